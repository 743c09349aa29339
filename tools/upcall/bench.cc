#include "bench.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bench_peers.h"
#include "bench_run.h"
#include "child.h"
#include "environment.h"
#include "failure.h"
#include "install_paths.h"
#include "settings.h"

namespace upcall::tool {
namespace {

constexpr int kFewestRuns = 7;
constexpr int kMostRuns = 1000;
constexpr int kStartsPerRun = 10;

double number(const std::string& option, const std::string& text, double least, double most, bool whole) {
  // Not from_chars, which g++ 10 has for whole numbers only.
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  bool plain = !text.empty() && text.find_first_not_of("0123456789.eE-") == std::string::npos;
  if (!plain || *end || !(value >= least && value <= most) ||
      (whole && value != static_cast<double>(static_cast<long>(value)))) {
    throw Failure(kUsage, fmt::format("bench: {}: bad value '{}'; accepted: {}{} to {}", option, text,
                                      whole ? "" : "a number from ", least, most));
  }
  return value;
}

class Driver {
 public:
  Driver(const BenchOptions& options, int runs)
      : options_(options), runs_(runs), worker_(find_bench_worker()), kernel_(Environment::inherited()) {
    kernel_.remove_upcall();
    upcall_ = kernel_;
    upcall_.set("LD_PRELOAD", preload_list(find_library(), kernel_.get("LD_PRELOAD")));
  }

  Section measure(const std::vector<const Benchmark*>& chosen, const std::vector<int>& cpus, size_t& step,
                  size_t steps) {
    Section section;
    section.cpus = cpus;
    upcall_.set("UPCALL_PROCESSORS", std::to_string(cpus.size()));
    for (const Benchmark* benchmark : chosen) {
      Row row;
      row.benchmark = benchmark;
      ++step;
      for (int run = 1; run <= runs_; ++run) {
        progress_.show(fmt::format("[{}/{}] {} on {} processor{}", step, steps, benchmark->name, cpus.size(),
                                   cpus.size() == 1 ? "" : "s"),
                       run, runs_);
        measure_once(*benchmark, false, cpus, row.kernel);
        measure_once(*benchmark, true, cpus, row.upcall);
      }
      section.rows.push_back(std::move(row));
    }
    for (int run = 1; run <= runs_; ++run) {
      progress_.show("floors", run, runs_);
      run_worker("floor_call", false, cpus, section.floor_call);
      run_worker("syscall_overhead", false, cpus, section.floor_syscall);
    }
    return section;
  }

 private:
  void measure_once(const Benchmark& benchmark, bool on_upcall, const std::vector<int>& cpus, Runs& runs) {
    // A side that failed or met its limit will do so again, and a failure may take the whole time limit.
    if (!runs.error.empty()) return;
    if (benchmark.name == "startup") {
      run_startup(on_upcall, cpus, runs);
    } else if (benchmark.kind == Benchmark::Kind::paired) {
      run_paired(benchmark, on_upcall, cpus, runs);
    } else {
      run_worker(benchmark.name, on_upcall, cpus, runs);
    }
  }

  void run_paired(const Benchmark& benchmark, bool on_upcall, const std::vector<int>& cpus, Runs& runs) {
    std::vector<std::string> server = {worker_};
    if (on_upcall) server = on_upcall_words(cpus.size(), worker_);
    run_with_client({benchmark.name, worker_, options_.scale, server, kernel_, on_upcall}, cpus, runs);
  }

  void run_worker(const std::string& name, bool on_upcall, const std::vector<int>& cpus, Runs& runs) {
    if (!runs.error.empty()) return;
    std::vector<std::string> command = {worker_, name, "--scale", options_.scale};
    auto known =
        std::find_if(benchmarks().begin(), benchmarks().end(), [&](const auto& b) { return b.name == name; });
    if (!options_.count.empty() && known != benchmarks().end() && known->counted) {
      command.insert(command.end(), {"--count", options_.count});
    }
    run_once({command, on_upcall ? upcall_ : kernel_, on_upcall}, name, cpus, runs);
  }

  // With Upcall as the user starts it, `upcall run` included.
  void run_startup(bool on_upcall, const std::vector<int>& cpus, Runs& runs) {
    std::vector<std::string> command = {worker_, "empty"};
    Environment environment = kernel_;
    if (on_upcall) {
      command.insert(command.begin(), {own_path(), "run", "--"});
      environment.set("UPCALL_LIBRARY", find_library());
    }
    Runs starts;
    for (int i = 0; i < kStartsPerRun; ++i) {
      ChildResult child = run_child(command, environment, cpus, kRunSeconds);
      if (!child.succeeded()) {
        runs.error = child.failure(kRunSeconds);
        return;
      }
      starts.values.push_back(child.wall_ms);
    }
    runs.values.push_back(starts.median());
  }

  const BenchOptions& options_;
  int runs_;
  std::string worker_;
  Environment kernel_;
  Environment upcall_;
  Progress progress_;
};

std::vector<const Benchmark*> choose(const std::vector<std::string>& names) {
  std::vector<const Benchmark*> chosen;
  for (const auto& name : names) {
    auto found =
        std::find_if(benchmarks().begin(), benchmarks().end(), [&](const auto& b) { return b.name == name; });
    if (found == benchmarks().end()) {
      throw Failure(kUsage,
                    fmt::format("bench: unknown benchmark '{}'; 'upcall bench --list' lists them", name));
    }
    if (std::find(chosen.begin(), chosen.end(), &*found) == chosen.end()) chosen.push_back(&*found);
  }
  if (names.empty()) {
    for (const auto& benchmark : benchmarks()) chosen.push_back(&benchmark);
  }
  return chosen;
}

// CPU sets to measure on, in order.
std::vector<std::vector<int>> choose_cpus(const BenchOptions& options) {
  std::vector<int> usable = usable_cpus();
  // The first CPU serves most interrupts, so the last one is quietest.
  int pinned = usable.back();
  if (!options.cpu.empty()) {
    pinned = static_cast<int>(number("--cpu", options.cpu, 0, 4095, true));
    if (std::find(usable.begin(), usable.end(), pinned) == usable.end()) {
      throw Failure(kUsage, fmt::format("bench: --cpu: this process may not use CPU {}; accepted: {}", pinned,
                                        fmt::join(usable, ", ")));
    }
  }
  auto first = [&](size_t count) {
    return std::vector<int>(usable.begin(), usable.begin() + static_cast<std::ptrdiff_t>(count));
  };
  if (!options.processors.empty()) {
    auto count = static_cast<size_t>(
        number("--processors", options.processors, 1, static_cast<double>(usable.size()), true));
    if (count == 1) return {{pinned}};
    return {first(count)};
  }
  if (usable.size() == 1) return {{pinned}};
  return {{pinned}, first(2)};
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw Failure(kUsage, fmt::format("bench: --compare: cannot read '{}': {}", path, strerror(errno)));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Where the report goes, links followed. Checked before the first run: minutes of measuring must not be lost.
std::string check_json_target(const std::string& name) {
  if (name.empty()) return "";
  std::error_code error;
  std::filesystem::path path = std::filesystem::weakly_canonical(std::filesystem::absolute(name), error);
  if (error) path = std::filesystem::absolute(name);
  struct stat info = {};
  bool exists = stat(path.c_str(), &info) == 0;
  // A file is replaced, which its folder must allow; a device is written to.
  std::string written = exists && !S_ISREG(info.st_mode) ? path.string() : path.parent_path().string();
  std::string problem = exists && S_ISDIR(info.st_mode) ? "it is a folder" : "";
  if (problem.empty() && access(written.c_str(), W_OK) != 0) problem = strerror(errno);
  if (!problem.empty())
    throw Failure(kUsage, fmt::format("bench: --json: cannot write '{}': {}", name, problem));
  return path.string();
}

// Whole or not at all: written beside it and renamed.
void write_report(const std::string& path, const std::string& text) {
  struct stat info = {};
  // A device or a pipe cannot be replaced by a file.
  bool in_place = stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  std::string target = in_place ? path : fmt::format("{}.{}.tmp", path, getpid());
  FILE* file = fopen(target.c_str(), "we");
  bool written = file != nullptr && fwrite(text.data(), 1, text.size(), file) == text.size() &&
                 fflush(file) == 0 && (in_place || fsync(fileno(file)) == 0);
  int error = errno;
  if (file != nullptr && fclose(file) != 0 && written) {
    written = false;
    error = errno;
  }
  if (written && !in_place && rename(target.c_str(), path.c_str()) != 0) {
    written = false;
    error = errno;
  }
  if (written) return;
  if (!in_place) unlink(target.c_str());
  throw Failure(kFailed, fmt::format("bench: --json: cannot write '{}': {}", path, strerror(error)));
}

std::string utc_now() {
  time_t now = time(nullptr);
  tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string load_average() {
  std::ifstream file("/proc/loadavg");
  std::string load;
  file >> load;
  return load;
}

double median(std::vector<double> sorted) {
  std::sort(sorted.begin(), sorted.end());
  size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// On one CPU, as everything that peers have is about one.
int bench_peers(const BenchOptions& options, const std::vector<const Benchmark*>& chosen, int runs) {
  for (const auto& [option, value] : {std::pair{"--count", options.count}, {"--compare", options.compare}}) {
    if (!value.empty()) throw Failure(kUsage, fmt::format("bench: --peers: does not go with {}", option));
  }
  BenchOptions pinned = options;
  if (pinned.processors.empty()) pinned.processors = "1";
  auto cpus = choose_cpus(pinned).front();
  if (cpus.size() != 1) throw Failure(kUsage, "bench: --peers: --processors: accepted: 1");
  std::string json = check_json_target(options.json);
  PeersReport report = {utc_now(), load_average(), runs, cpus.front(), find_tables(options, chosen)};
  catch_interrupts();
  measure_peers(options, report);
  print_peers(report);
  if (!json.empty()) write_report(json, peers_json(report));
  return report.good() ? 0 : kFailed;
}

int list_benchmarks(const std::vector<const Benchmark*>& chosen) {
  for (const auto* b : chosen) fmt::print("{:<19} {:<6} {}\n", b->name, b->unit, b->what);
  return 0;
}

}  // namespace

double Runs::median() const { return upcall::tool::median(values); }

double Runs::median_of(const std::string& detail) const {
  auto found = details.find(detail);
  return found == details.end() ? 0 : upcall::tool::median(found->second);
}

double Runs::least() const { return *std::min_element(values.begin(), values.end()); }
double Runs::most() const { return *std::max_element(values.begin(), values.end()); }

bool Row::met() const {
  if (benchmark->rule == Benchmark::Rule::at_most_added) return added() <= benchmark->target;
  if (benchmark->rule == Benchmark::Rule::at_most) return upcall.median() <= benchmark->target;
  if (benchmark->rule == Benchmark::Rule::at_most_times)
    return upcall.median() <= benchmark->target * kernel.median();
  if (benchmark->rule == Benchmark::Rule::share_and_added)
    return upcall.median() <= 1.05 * kernel.median() + benchmark->target;
  if (benchmark->rule == Benchmark::Rule::at_most_bare)
    return upcall.median() <= benchmark->target * upcall.median_of("bare_ns");
  return ratio() >= benchmark->target;
}

int bench(const BenchOptions& options) {
  auto chosen = choose(options.names);
  if (options.peers) chosen = with_peers(chosen, !options.names.empty());
  if (options.list) return list_benchmarks(chosen);
  int runs = static_cast<int>(number("--runs", options.runs, kFewestRuns, kMostRuns, true));
  number("--scale", options.scale, 0.001, 1000, false);
  if (!options.count.empty()) number("--count", options.count, 1, 10'000'000, true);
  if (options.peers) return bench_peers(options, chosen, runs);
  auto cpu_sets = choose_cpus(options);
  std::string json = check_json_target(options.json);
  std::string earlier;
  if (!options.compare.empty()) {
    earlier = read_file(options.compare);
    check_report_json(options.compare, earlier);
  }
  Report report = {utc_now(), load_average(), runs, {}};
  catch_interrupts();
  {
    Driver driver(options, report.runs);
    std::vector<std::vector<const Benchmark*>> plan;
    size_t steps = 0;
    for (const auto& cpus : cpu_sets) {
      plan.push_back(chosen);
      // Left out of a second section only: who asks for several processors gets what was asked for.
      if (cpus.size() > 1 && cpu_sets.size() > 1) {
        std::erase_if(plan.back(), [](const Benchmark* b) { return b->one_processor; });
      }
      steps += plan.back().size();
    }
    size_t step = 0;
    for (size_t i = 0; i < plan.size(); ++i) {
      if (!plan[i].empty()) report.sections.push_back(driver.measure(plan[i], cpu_sets[i], step, steps));
    }
  }
  print_report(report);
  if (!earlier.empty()) print_comparison(report, options.compare, earlier);
  if (!json.empty()) write_report(json, report_json(report));
  for (const auto& section : report.sections) {
    for (const auto& row : section.rows) {
      for (const Runs* side : {&row.kernel, &row.upcall}) {
        if (!side->error.empty() && !side->at_limit) return kFailed;
      }
    }
    if (!section.floor_call.good() || !section.floor_syscall.good()) return kFailed;
  }
  return 0;
}

}  // namespace upcall::tool
