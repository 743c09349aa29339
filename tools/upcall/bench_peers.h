// `upcall bench --peers`: benchmarks on Upcall (the stalls with each source of events) beside kernel threads and programs on
// other runtimes that do the same.
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
  Command command;    // up to the benchmark's name; the rest follows it. Of a paired benchmark: the server
  std::vector<std::string> rest;
  std::string left_out;  // why it cannot run here
};

// Benchmarks with the same sides.
struct PeersTable {
  Benchmark::Peers kind = Benchmark::Peers::none;
  std::vector<Side> sides;
  struct Row {
    const Benchmark* benchmark = nullptr;
    std::vector<Runs> sides;  // in the order of the table's sides
  };
  std::vector<Row> rows;
};

struct PeersReport {
  std::string date;  // UTC
  std::string load;  // /proc/loadavg before the first run
  int runs = 0;
  int cpu = 0;
  std::vector<PeersTable> tables;

  bool good() const;  // nothing that ran failed
};

// Those of `chosen` that peers have; throws Failure (usage) for others if they were named.
std::vector<const Benchmark*> with_peers(const std::vector<const Benchmark*>& chosen, bool named);
// The tables of `chosen`, still without figures. Says on standard error which peers are left out, and why.
std::vector<PeersTable> find_tables(const BenchOptions& options, const std::vector<const Benchmark*>& chosen);
void measure_peers(const BenchOptions& options, PeersReport& report);
void print_peers(const PeersReport& report);
std::string peers_json(const PeersReport& report);

}  // namespace upcall::tool
