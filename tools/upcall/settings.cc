#include "settings.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include "failure.h"

namespace upcall::tool {
namespace {

constexpr std::array<std::string_view, 5> kTopics = {"patch", "syscall", "sched", "signal", "start"};
// The limits of the runtime (src/runtime/config.cc), refused here before the program is looked for.
constexpr long kShortestQuantumUs = 50;
constexpr long kMostActivations = 1L << 18;
constexpr long kLongestQuantumUs = 10'000'000;
constexpr long kMostProcessors = 256;
// Size of an affinity mask that no kernel refuses as too small.
constexpr int kMostCpus = 8192;

[[noreturn]] void refuse(const std::string& source, const std::string& value, const std::string& accepted) {
  throw Failure(kUsage, fmt::format("{}: bad value '{}'; accepted: {}", source, value, accepted));
}

std::optional<long> whole_number(std::string_view text) {
  long value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || text[0] == '-')
    return std::nullopt;
  return value;
}

std::string check_processors(const std::string& source, const std::string& value, bool from_environment) {
  long cpus = static_cast<long>(usable_cpus().size());
  auto count = whole_number(value);
  long most = std::min(cpus, kMostProcessors);
  std::string accepted = fmt::format("1 to {} (the CPUs that this process may use)", most);
  if (!count || *count < 1 || *count > kMostProcessors) refuse(source, value, accepted);
  if (*count > most) {
    // A variable outlives the place it was set for: under `taskset` it means "as many as there are".
    if (!from_environment) refuse(source, value, accepted);
    count = most;
  }
  return std::to_string(*count);
}

std::string check_quantum(const std::string& source, const std::string& value) {
  static const char* accepted = "0 (no time slices) or 50us to 10s, a whole number with its unit us, ms or s";
  if (value == "0") return value;
  size_t digits = std::min(value.find_first_not_of("0123456789"), value.size());
  auto count = whole_number(std::string_view(value).substr(0, digits));
  std::string unit = value.substr(digits);
  long factor = unit == "us" ? 1 : unit == "ms" ? 1000 : unit == "s" ? 1'000'000 : 0;
  if (!count || factor == 0 || *count > kLongestQuantumUs || *count * factor > kLongestQuantumUs ||
      *count * factor < kShortestQuantumUs) {
    refuse(source, value, accepted);
  }
  return value;
}

std::string check_events(const std::string& source, const std::string& value) {
  if (value != "sentinel" && value != "bpf" && value != "monitor") {
    refuse(source, value,
           "sentinel (a SCHED_IDLE kernel thread for each processor), bpf (the same, told by the kernel's "
           "scheduler) or monitor (one kernel thread that looks at intervals)");
  }
  return value;
}

std::string check_activations(const std::string& source, const std::string& value) {
  auto count = whole_number(value);
  if (!count || *count < 1 || *count > kMostActivations)
    refuse(source, value, fmt::format("1 to {}", kMostActivations));
  return value;
}

std::string check_descriptors(const std::string& source, const std::string& value) {
  if (value != "sockets" && value != "events" && value != "calls") {
    refuse(source, value,
           "sockets (threads wait for sockets without a kernel thread), events (for pipes, too) or "
           "calls (in a call of the kernel's, on a kernel thread each)");
  }
  return value;
}

std::string check_share(const std::string& source, const std::string& value) {
  if (value != "process" && value != "threads") {
    refuse(
        source, value,
        "process (beside other programs, each processor counts as one kernel thread; the default) or threads "
        "(it counts as much as its threads, where the system allows a higher weight)");
  }
  return value;
}

std::string check_log(const std::string& source, const std::string& value) {
  std::string result;
  size_t at = 0;
  while (at <= value.size()) {
    size_t end = std::min(value.find(',', at), value.size());
    std::string topic = value.substr(at, end - at);
    if (topic == "all") {
      topic = fmt::format("{}", fmt::join(kTopics, ","));
    } else if (std::find(kTopics.begin(), kTopics.end(), topic) == kTopics.end()) {
      refuse(source, value,
             fmt::format("all, or some of {} with commas between them", fmt::join(kTopics, ",")));
    }
    result += (result.empty() ? "" : ",") + topic;
    at = end + 1;
  }
  return result;
}

// Checked now because the runtime could only complain at the program's end, its figures lost. Absolute,
// because the program may change its directory.
std::string check_stats_file(const std::string& source, const std::string& value) {
  if (value.empty()) refuse(source, value, "a file name; %p in it stands for the process id");
  std::filesystem::path path = std::filesystem::absolute(value);
  std::string folder = path.parent_path().string();
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    refuse(source, value,
           fmt::format("a file in a folder that can be written to ({}: {})", folder, strerror(errno)));
  }
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    refuse(source, value, "a file, this is a folder");
  return path.string();
}

std::string check_flag(const std::string& source, const std::string& value) {
  if (value != "0" && value != "1") refuse(source, value, "0 or 1");
  return value;
}

std::string check_switch(const std::string& source, const std::string& value) {
  if (value != "on" && value != "off") refuse(source, value, "on or off");
  return value;
}

}  // namespace

std::vector<int> usable_cpus() {
  std::vector<int> cpus;
  cpu_set_t* set = CPU_ALLOC(kMostCpus);
  size_t size = CPU_ALLOC_SIZE(kMostCpus);
  CPU_ZERO_S(size, set);
  if (sched_getaffinity(0, size, set) == 0) {
    for (int cpu = 0; cpu < kMostCpus; ++cpu) {
      if (CPU_ISSET_S(cpu, size, set)) cpus.push_back(cpu);
    }
  }
  CPU_FREE(set);
  if (cpus.empty())
    throw Failure(kFailed, fmt::format("cannot read the CPU affinity mask: {}", strerror(errno)));
  return cpus;
}

void apply_settings(const RunSettings& settings, Environment& environment) {
  // An empty variable counts as unset, as ld.so and most programs have it.
  auto apply = [&](const std::string& option, const std::string& given, const std::string& variable,
                   auto check) {
    std::string inherited = environment.get(variable);
    if (!given.empty()) {
      environment.set(variable, check(option, given, false));
    } else if (!inherited.empty()) {
      environment.set(variable, check(variable, inherited, true));
    }
  };
  apply("--processors", settings.processors, "UPCALL_PROCESSORS", check_processors);
  apply("--quantum", settings.quantum, "UPCALL_QUANTUM",
        [](const auto& source, const auto& value, bool) { return check_quantum(source, value); });
  apply("--events", settings.events, "UPCALL_EVENTS",
        [](const auto& source, const auto& value, bool) { return check_events(source, value); });
  apply("--activations", settings.activations, "UPCALL_ACTIVATIONS",
        [](const auto& source, const auto& value, bool) { return check_activations(source, value); });
  apply("--descriptors", settings.descriptors, "UPCALL_DESCRIPTORS",
        [](const auto& source, const auto& value, bool) { return check_descriptors(source, value); });
  apply("--share", settings.share, "UPCALL_SHARE",
        [](const auto& source, const auto& value, bool) { return check_share(source, value); });
  apply("--stats-file", settings.stats_file, "UPCALL_STATS_FILE",
        [](const auto& source, const auto& value, bool) { return check_stats_file(source, value); });
  apply("--log", settings.log, "UPCALL_LOG",
        [](const auto& source, const auto& value, bool) { return check_log(source, value); });
  apply("--follow",
        settings.follow.empty()     ? ""
        : settings.follow == "true" ? "1"
                                    : "0",
        "UPCALL_FOLLOW",
        [](const auto& source, const auto& value, bool) { return check_flag(source, value); });
  apply("--stats", settings.stats ? "1" : "", "UPCALL_STATS",
        [](const auto& source, const auto& value, bool) { return check_flag(source, value); });
  apply("", "", "UPCALL_SYMBOLS",
        [](const auto& source, const auto& value, bool) { return check_switch(source, value); });
}

}  // namespace upcall::tool
