// `upcall doctor`: CPUs, control groups, limits and security policies.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "doctor.h"
#include "settings.h"

namespace upcall::tool {
namespace {

using Level = Finding::Level;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<long> number_in(const std::string& path) {
  std::string line = first_line(path);
  if (line.empty() || line.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return strtol(line.c_str(), nullptr, 10);
}

std::string cpu_list(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i;
    while (end + 1 < cpus.size() && cpus[end + 1] == cpus[end] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[i]);
    if (end > i) text += "-" + std::to_string(cpus[end]);
    i = end + 1;
  }
  return text;
}

// Folders of this process's control group for `controller`, innermost first; both hierarchies, as mounted.
std::vector<std::string> cgroup_folders(const std::string& controller) {
  std::map<std::string, std::string> mounted;  // controller, or "" for version 2 -> folder
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string device, folder, type, options;
    fields >> device >> folder >> type >> options;
    if (type == "cgroup2") mounted[""] = folder;
    std::istringstream list(options);
    for (std::string option; type == "cgroup" && std::getline(list, option, ',');) mounted[option] = folder;
  }
  std::vector<std::string> folders;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    size_t first = line.find(':');
    size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    bool version2 = names == ",,";
    auto mount = mounted.find(version2 ? "" : controller);
    if (mount == mounted.end() || (!version2 && names.find("," + controller + ",") == std::string::npos))
      continue;
    std::filesystem::path path = line.substr(second + 1);
    for (;; path = path.parent_path()) {
      folders.push_back(mount->second + path.string());
      if (!path.has_relative_path()) break;
    }
  }
  return folders;
}

// CPUs' worth of time that the control groups allow; the tightest counts.
std::optional<double> cgroup_cpus() {
  std::optional<double> least;
  for (const auto& folder : cgroup_folders("cpu")) {
    double quota = -1;
    double period = 0;
    std::istringstream version2(first_line(folder + "/cpu.max"));
    if (!(version2 >> quota >> period)) {
      quota = static_cast<double>(number_in(folder + "/cpu.cfs_quota_us").value_or(-1));
      period = static_cast<double>(number_in(folder + "/cpu.cfs_period_us").value_or(0));
    }
    if (quota > 0 && period > 0) least = std::min(least.value_or(HUGE_VAL), quota / period);
  }
  return least;
}

Finding probe_cpus() {
  auto cpus = usable_cpus();
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  std::string processors = cpus.size() == 1 ? "1 processor" : fmt::format("{} processors", cpus.size());
  return {Level::good, "CPUs",
          fmt::format("{} of {} in the affinity mask ({})", cpus.size(), online, cpu_list(cpus)),
          processors + " unless --processors says less", ""};
}

Finding probe_cgroup_cpu() {
  auto limit = cgroup_cpus();
  if (!limit) return {Level::good, "control group: CPU", "no limit", "all CPUs of the mask", ""};
  auto cpus = static_cast<double>(usable_cpus().size());
  Finding f = {Level::good, "control group: CPU", fmt::format("{:.2f} CPUs", *limit), "all CPUs of the mask",
               ""};
  if (*limit < cpus) {
    f.level = Level::note;
    f.cost =
        fmt::format("processors are stopped when the quota is used up; --processors {:.0f} fits it better",
                    std::max(1.0, std::ceil(*limit)));
  }
  return f;
}

Finding probe_thread_limits() {
  std::string text;
  long least = LONG_MAX;
  auto add = [&](const std::string& name, std::optional<long> value) {
    if (!value) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, *value);
    least = std::min(least, *value);
  };
  add("kernel.threads-max", number_in("/proc/sys/kernel/threads-max"));
  add("kernel.pid_max", number_in("/proc/sys/kernel/pid_max"));
  std::optional<long> pids;
  for (const auto& folder : cgroup_folders("pids")) {
    auto value = number_in(folder + "/pids.max");
    if (value) pids = std::min(pids.value_or(LONG_MAX), *value);
  }
  add("control group pids.max", pids);
  rlimit limit = {};
  if (getuid() != 0 && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    add("ulimit -u", static_cast<long>(limit.rlim_cur));
  }
  Finding f = {Level::good, "kernel threads", text.empty() ? "no limit found" : text,
               "they bound calls blocked in the kernel at once, not threads", ""};
  if (least < 64) {
    f.level = Level::note;
    f.cost = "few threads can be blocked in the kernel at the same time";
  }
  return f;
}

Finding probe_map_count() {
  auto count = number_in("/proc/sys/vm/max_map_count");
  return {Level::good, "vm.max_map_count", count ? std::to_string(*count) : "unknown",
          "thread stacks come from few large mappings", ""};
}

Finding probe_address_space() {
  rlimit limit = {};
  getrlimit(RLIMIT_AS, &limit);
  if (limit.rlim_cur == RLIM_INFINITY)
    return {Level::good, "address space", "no limit", "stacks of default size", ""};
  return {Level::note, "address space", fmt::format("ulimit -v {} KiB", limit.rlim_cur / 1024),
          "stacks of default size",
          fmt::format("at most about {} threads with stacks of 8 MiB", limit.rlim_cur / (8ul << 20))};
}

std::string status_field(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) {
      size_t begin = line.find_first_not_of(" \t", name.size() + 1);
      return begin == std::string::npos ? "" : line.substr(begin);
    }
  }
  return "";
}

Finding probe_policies() {
  std::string modules = first_line("/sys/kernel/security/lsm");
  std::string label = first_line("/proc/self/attr/current");
  label = label.substr(0, label.find('\0'));
  std::string seccomp = status_field("Seccomp");
  std::string found =
      fmt::format("seccomp {}, no_new_privs {}, modules {}{}",
                  seccomp == "0"   ? "off"
                  : seccomp == "1" ? "strict"
                  : seccomp == "2" ? "filter"
                                   : "unknown",
                  status_field("NoNewPrivs") == "1" ? "on" : "off", modules.empty() ? "unknown" : modules,
                  label.empty() ? "" : ", label " + label);
  if (seccomp == "2") {
    return {Level::note, "security", found, "system calls as the filter allows",
            "a filter may refuse what the runtime needs; the trial run below shows it"};
  }
  return {Level::good, "security", found, "nothing to do", ""};
}

}  // namespace

std::vector<Finding> probe_limits() {
  return {probe_cpus(),      probe_cgroup_cpu(),    probe_thread_limits(),
          probe_map_count(), probe_address_space(), probe_policies()};
}

}  // namespace upcall::tool
