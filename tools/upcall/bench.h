// `upcall bench`: each benchmark both ways, in alternation, every run a fresh process.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace upcall::tool {

struct BenchOptions {
  std::vector<std::string> names;  // empty: all
  std::string processors;          // as given; "" means one pinned processor, then two
  std::string runs = "7";
  std::string cpu;          // CPU of one-processor runs; "" means the last one allowed
  std::string scale = "1";  // of each run's duration
  std::string count;        // number of threads, where a benchmark has one
  std::string json;
  std::string compare;
  bool list = false;
  bool peers = false;
};

struct Benchmark {
  enum class Rule {
    none,
    times_faster,     // kernel / Upcall at least `target`
    times_less,       // the same, said of memory
    at_most_added,    // Upcall - kernel at most `target`
    at_most,          // Upcall at most `target`
    at_most_times,    // Upcall at most `target` times kernel threads
    share_and_added,  // Upcall at most kernel threads and a twentieth, and `target` more
    times_more,       // of what is better when there is more of it: Upcall / kernel at least `target`
    at_most_bare,     // Upcall at most `target` times the run's own detail "bare_ns"
  };
  // paired: the worker is the client, on a CPU of its own, and starts the program that is measured.
  enum class Kind { alone, paired };
  // Which programs on other runtimes do the same.
  enum class Peers { none, stalls, echo, disk };
  std::string name;
  std::string unit;
  std::string what;
  Rule rule;
  double target;
  bool counted;        // takes --count
  bool one_processor;  // says nothing more on several
  Kind kind = Kind::alone;
  Peers peers = Peers::none;

  bool more_is_better() const { return unit == "req/s" || unit == "IO/s"; }
};

const std::vector<Benchmark>& benchmarks();

// The runs of one benchmark on one side.
struct Runs {
  std::vector<double> values;
  std::map<std::string, std::vector<double>> details;  // further figures of the same runs
  std::string runtime;                                 // of a peer: "go1.19.8"
  std::string error;                                   // why there are none, or fewer
  bool at_limit = false;  // the system gave no more threads: an answer, not a failure

  bool good() const { return error.empty() && !values.empty(); }
  double median() const;
  double median_of(const std::string& detail) const;  // 0 where there is none
  double least() const;
  double most() const;
};

struct Row {
  const Benchmark* benchmark = nullptr;
  Runs kernel;
  Runs upcall;

  bool good() const { return kernel.good() && upcall.good(); }
  // How much better Upcall is.
  double ratio() const {
    return benchmark->more_is_better() ? upcall.median() / kernel.median()
                                       : kernel.median() / upcall.median();
  }
  double added() const { return upcall.median() - kernel.median(); }
  bool met() const;
};

struct Section {
  std::vector<int> cpus;
  std::vector<Row> rows;
  Runs floor_call;
  Runs floor_syscall;
};

struct Report {
  std::string date;  // UTC
  std::string load;  // /proc/loadavg before the first run
  int runs = 0;
  std::vector<Section> sections;
};

// Measures and prints; returns the exit status. Throws Failure and Interrupted.
int bench(const BenchOptions& options);

void print_report(const Report& report);
std::string report_json(const Report& report);
// `earlier` is the text of a file that report_json made.
void print_comparison(const Report& report, const std::string& file, const std::string& earlier);
// Throws Failure (usage) when `text` is not such a file.
void check_report_json(const std::string& file, const std::string& text);

}  // namespace upcall::tool
