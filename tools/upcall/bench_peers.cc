#include "bench_peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "doctor.h"
#include "failure.h"
#include "install_paths.h"

namespace upcall::tool {
namespace {

// A program on another runtime; optional, because of what it takes to build it.
struct Peer {
  Benchmark::Peers kind;
  const char* key;
  const char* title;
  const char* program;
  const char* package;  // of Debian
  bool needs_worker;    // to answer it
};
constexpr std::array<Peer, 5> kPeers = {{
    {Benchmark::Peers::stalls, "go", "Go", "upcall-bench-go", "golang-go", true},
    {Benchmark::Peers::stalls, "boost_fiber", "Boost.Fiber", "upcall-bench-fiber", "libboost-fiber-dev",
     false},
    {Benchmark::Peers::echo, "go", "Go", "upcall-bench-echo-go", "golang-go", false},
    {Benchmark::Peers::echo, "tokio", "Tokio", "upcall-bench-echo-tokio", "cargo", false},
    {Benchmark::Peers::echo, "boost_asio", "Boost.Asio", "upcall-bench-echo-asio", "libboost-dev", false},
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

// The worker as a client of fio's io_uring engine: it makes the file and empties the page cache, as for its own threads.
Side fio_side(const std::string& worker, const Environment& kernel) {
  Side side = {"fio_io_uring", "fio, io_uring", {{worker}, kernel, false}, {}, ""};
  std::string fio = find_on_path("fio");
  side.rest = {"--fio", fio};
  if (fio.empty()) side.left_out = "there is no fio on the PATH; it is in the Debian package fio";
  return side;
}

std::vector<Side> sides_of(Benchmark::Peers kind, const std::string& scale) {
  Environment kernel = Environment::inherited();
  kernel.remove_upcall();
  std::string worker = find_bench_worker();
  std::vector<Side> sides = {{"kernel_threads", "kernel threads", {{worker}, kernel, false}, {}, ""}};
  if (kind == Benchmark::Peers::stalls) {
    for (const char* events : {"sentinel", "bpf", "monitor"})
      sides.push_back(upcall_side(events, worker, kernel));
  } else if (kind == Benchmark::Peers::echo) {
    sides.push_back({"upcall", "Upcall", {on_upcall_words(1, worker), kernel, true}, {}, ""});
    sides.push_back({"epoll", "epoll loop", {{worker, "serve_epoll"}, kernel, false}, {}, ""});
  } else {
    Side upcall = upcall_side("sentinel", worker, kernel);
    upcall.key = "upcall";
    upcall.title = "Upcall";
    upcall.command.environment.unset("UPCALL_EVENTS");
    sides.push_back(upcall);
    sides.push_back(fio_side(worker, kernel));
  }
  for (const Peer& peer : kPeers) {
    if (peer.kind == kind) sides.push_back(peer_side(peer, worker, kernel));
  }
  for (Side& side : sides) {
    side.rest.insert(side.rest.end(), {"--scale", scale});
    if (!side.left_out.empty())
      fmt::print(stderr, "upcall: bench: {} is left out: {}\n", side.title, side.left_out);
  }
  return sides;
}

void run_side(const Side& side, const Benchmark& benchmark, const BenchOptions& options, int cpu,
              Runs& runs) {
  Command command = side.command;
  if (benchmark.kind == Benchmark::Kind::paired) {
    run_with_client({benchmark.name, find_bench_worker(), options.scale, command.words, command.environment,
                     command.on_upcall},
                    {cpu}, runs);
    return;
  }
  command.words.push_back(benchmark.name);
  command.words.insert(command.words.end(), side.rest.begin(), side.rest.end());
  run_once(command, benchmark.name, {cpu}, runs);
}

}  // namespace

bool PeersReport::good() const {
  auto side_good = [](const Runs& side) { return side.error.empty() || side.at_limit; };
  return std::all_of(tables.begin(), tables.end(), [&](const PeersTable& table) {
    return std::all_of(table.rows.begin(), table.rows.end(), [&](const PeersTable::Row& row) {
      return std::all_of(row.sides.begin(), row.sides.end(), side_good);
    });
  });
}

std::vector<const Benchmark*> with_peers(const std::vector<const Benchmark*>& chosen, bool named) {
  std::vector<const Benchmark*> found;
  for (const Benchmark* benchmark : chosen) {
    if (benchmark->peers != Benchmark::Peers::none) {
      found.push_back(benchmark);
    } else if (named) {
      std::vector<std::string> accepted;
      for (const auto& b : benchmarks()) {
        if (b.peers != Benchmark::Peers::none) accepted.push_back(b.name);
      }
      throw Failure(kUsage, fmt::format("bench: --peers: no peer does '{}'; accepted: {}", benchmark->name,
                                        fmt::join(accepted, ", ")));
    }
  }
  return found;
}

std::vector<PeersTable> find_tables(const BenchOptions& options,
                                    const std::vector<const Benchmark*>& chosen) {
  std::vector<PeersTable> tables;
  for (const Benchmark* benchmark : chosen) {
    auto table = std::find_if(tables.begin(), tables.end(),
                              [&](const PeersTable& t) { return t.kind == benchmark->peers; });
    if (table == tables.end()) {
      tables.push_back({benchmark->peers, sides_of(benchmark->peers, options.scale), {}});
      table = tables.end() - 1;
    }
    table->rows.push_back({benchmark, std::vector<Runs>(table->sides.size())});
  }
  return tables;
}

void measure_peers(const BenchOptions& options, PeersReport& report) {
  Progress progress;
  size_t step = 0;
  size_t steps = 0;
  for (const PeersTable& table : report.tables) steps += table.rows.size();
  for (PeersTable& table : report.tables) {
    for (PeersTable::Row& row : table.rows) {
      ++step;
      for (int run = 1; run <= report.runs; ++run) {
        progress.show(fmt::format("[{}/{}] {}", step, steps, row.benchmark->name), run, report.runs);
        for (size_t i = 0; i < table.sides.size(); ++i) {
          if (table.sides[i].left_out.empty())
            run_side(table.sides[i], *row.benchmark, options, report.cpu, row.sides[i]);
        }
      }
    }
  }
}

}  // namespace upcall::tool
