// `upcall bench --peers`: benchmarks on Upcall with each source of events, beside kernel threads, Go and a library of fibers.
#pragma once

#include <string>
#include <vector>

#include "bench.h"
#include "bench_run.h"

namespace upcall::tool {

// One way to run a benchmark.
struct Side {
  std::string key;    // in JSON
  std::string title;  // for people
  Command command;    // up to the benchmark's name; the rest follows it
  std::vector<std::string> rest;
  std::string left_out;  // why it cannot run here
};

struct PeersReport {
  std::string date;  // UTC
  std::string load;  // /proc/loadavg before the first run
  int runs = 0;
  int cpu = 0;
  std::vector<Side> sides;
  struct Row {
    const Benchmark* benchmark = nullptr;
    std::vector<Runs> sides;  // in the order of the report's sides
  };
  std::vector<Row> rows;

  bool good() const;  // nothing that ran failed
};

// Those of `chosen` that peers have; throws Failure (usage) for others if they were named.
std::vector<const Benchmark*> with_peers(const std::vector<const Benchmark*>& chosen, bool named);
// Says on standard error which peers are left out, and why.
std::vector<Side> find_sides(const BenchOptions& options);
void measure_peers(const std::vector<const Benchmark*>& chosen, PeersReport& report);
void print_peers(const PeersReport& report);
std::string peers_json(const PeersReport& report);

}  // namespace upcall::tool
