#include "bench_peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "bench_report.h"
#include "doctor.h"
#include "failure.h"
#include "install_paths.h"

namespace upcall::tool {
namespace {

constexpr std::array<std::string_view, 2> kWithPeers = {"stall_read", "stall_fault"};

// A program on another runtime; optional, because of what it takes to build it.
struct Peer {
  const char* key;
  const char* title;
  const char* program;
  const char* package;  // of Debian
  bool needs_worker;    // to answer it
};
constexpr std::array<Peer, 2> kPeers = {{
    {"go", "Go", "upcall-bench-go", "golang-go", true},
    {"boost_fiber", "Boost.Fiber", "upcall-bench-fiber", "libboost-fiber-dev", false},
}};

Side upcall_side(const std::string& events, const std::string& worker, const Environment& kernel) {
  Side side = {"upcall_" + events, "Upcall, " + events, {{worker}, kernel, true}, {}, ""};
  Environment& environment = side.command.environment;
  environment.set("LD_PRELOAD", preload_list(find_library(), kernel.get("LD_PRELOAD")));
  environment.set("UPCALL_PROCESSORS", "1");
  environment.set("UPCALL_EVENTS", events);
  // Otherwise the runtime would take the sentinel, under the wrong name.
  if (events == "bpf") {
    if (Finding bpf = probe_bpf(); bpf.level != Finding::Level::good) side.left_out = bpf.found;
  }
  return side;
}

Side peer_side(const Peer& peer, const std::string& worker, const Environment& kernel) {
  std::string program = find_bench_peer(peer.program);
  Side side = {peer.key, peer.title, {{program}, kernel, false}, {}, ""};
  if (peer.needs_worker) side.rest = {"--worker", worker};
  if (program.empty()) {
    side.left_out = fmt::format("there is no {}; './dev bench --peers' builds it, with the Debian package {}",
                                peer.program, peer.package);
  }
  return side;
}

std::string cell(const Side& side, const Runs& runs) { return side.left_out.empty() ? spread(runs) : "-"; }

}  // namespace

bool PeersReport::good() const {
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) {
    return std::all_of(row.sides.begin(), row.sides.end(),
                       [](const Runs& side) { return side.error.empty() || side.at_limit; });
  });
}

std::vector<const Benchmark*> with_peers(const std::vector<const Benchmark*>& chosen, bool named) {
  std::vector<const Benchmark*> found;
  for (const Benchmark* benchmark : chosen) {
    if (std::find(kWithPeers.begin(), kWithPeers.end(), benchmark->name) != kWithPeers.end()) {
      found.push_back(benchmark);
    } else if (named) {
      throw Failure(kUsage, fmt::format("bench: --peers: no peer does '{}'; accepted: {}", benchmark->name,
                                        fmt::join(kWithPeers, ", ")));
    }
  }
  return found;
}

std::vector<Side> find_sides(const BenchOptions& options) {
  Environment kernel = Environment::inherited();
  kernel.remove_upcall();
  std::string worker = find_bench_worker();
  std::vector<Side> sides = {{"kernel_threads", "kernel threads", {{worker}, kernel, false}, {}, ""}};
  for (const char* events : {"sentinel", "bpf", "monitor"})
    sides.push_back(upcall_side(events, worker, kernel));
  for (const Peer& peer : kPeers) sides.push_back(peer_side(peer, worker, kernel));
  for (Side& side : sides) {
    side.rest.insert(side.rest.end(), {"--scale", options.scale});
    if (!side.left_out.empty())
      fmt::print(stderr, "upcall: bench: {} is left out: {}\n", side.title, side.left_out);
  }
  return sides;
}

void measure_peers(const std::vector<const Benchmark*>& chosen, PeersReport& report) {
  Progress progress;
  for (const Benchmark* benchmark : chosen) {
    PeersReport::Row row = {benchmark, std::vector<Runs>(report.sides.size())};
    for (int run = 1; run <= report.runs; ++run) {
      progress.show(fmt::format("[{}/{}] {}", report.rows.size() + 1, chosen.size(), benchmark->name), run,
                    report.runs);
      for (size_t i = 0; i < report.sides.size(); ++i) {
        const Side& side = report.sides[i];
        if (!side.left_out.empty()) continue;
        Command command = side.command;
        command.words.push_back(benchmark->name);
        command.words.insert(command.words.end(), side.rest.begin(), side.rest.end());
        run_once(command, benchmark->name, {report.cpu}, row.sides[i]);
      }
    }
    report.rows.push_back(std::move(row));
  }
}

void print_peers(const PeersReport& report) {
  fmt::print("One processor, pinned to CPU {}; median (min-max) of {} runs each, in alternation\n\n",
             report.cpu, report.runs);
  std::string head = fmt::format("{:<17}", "");
  for (const auto& row : report.rows)
    head += fmt::format(" {:<24}", row.benchmark->name + ", " + row.benchmark->unit);
  auto print_trimmed = [](const std::string& line) {
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  };
  print_trimmed(head);
  for (size_t i = 0; i < report.sides.size(); ++i) {
    std::string line = fmt::format("{:<17}", report.sides[i].title);
    for (const auto& row : report.rows) line += fmt::format(" {:<24}", cell(report.sides[i], row.sides[i]));
    // A run of any benchmark tells the version.
    if (!report.rows.empty()) line += " " + report.rows[0].sides[i].runtime;
    print_trimmed(line);
  }
  for (const auto& row : report.rows) {
    for (size_t i = 0; i < report.sides.size(); ++i) {
      if (!row.sides[i].error.empty())
        fmt::print("  {} on {}: {}\n", row.benchmark->name, report.sides[i].title, row.sides[i].error);
    }
  }
  fmt::print("\n");
  for (const auto& row : report.rows) fmt::print("{}: {}\n", row.benchmark->name, row.benchmark->what);
  print_machine(report.date, report.load);
}

std::string peers_json(const PeersReport& report) {
  nlohmann::ordered_json document = machine_json("upcall-bench-peers", report.date, report.load, report.runs);
  document["cpu"] = report.cpu;
  document["results"] = nlohmann::ordered_json::array();
  for (const auto& row : report.rows) {
    nlohmann::ordered_json result = {{"name", row.benchmark->name}, {"unit", row.benchmark->unit}};
    for (size_t i = 0; i < report.sides.size(); ++i) {
      const Side& side = report.sides[i];
      if (side.left_out.empty()) {
        result[side.key] = runs_json(row.sides[i]);
      } else {
        result[side.key] = {{"left_out", side.left_out}};
      }
    }
    document["results"].push_back(std::move(result));
  }
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace upcall::tool
