// What `upcall bench --peers` shows and keeps.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "bench_details.h"
#include "bench_peers.h"
#include "bench_report.h"

namespace upcall::tool {
namespace {

using Json = nlohmann::ordered_json;

// How Upcall must stand beside another side.
struct Target {
  const char* benchmark;
  const char* against;  // key of the side
  const char* detail;   // less of it is better; "": the value
  double least;         // times as good
};
constexpr std::array<Target, 10> kTargets = {{
    {"echo_1", "kernel_threads", "", 1},
    {"echo_1000", "kernel_threads", "", 2},
    {"echo_1000", "epoll", "", 0.97},
    {"echo_1000", "epoll", "p99_us", 1},
    {"echo_10000", "epoll", "", 0.9},
    {"echo_10000", "go", "", 1},
    {"echo_10000", "tokio", "", 1},
    {"echo_10000", "boost_asio", "", 1},
    {"disk_cold", "fio_io_uring", "", 0.9},
    {"disk_direct", "fio_io_uring", "", 0.9},
}};

const Runs* find_side(const PeersTable& table, const PeersTable::Row& row, std::string_view key) {
  for (size_t i = 0; i < table.sides.size(); ++i) {
    if (table.sides[i].key == key && row.sides[i].good()) return &row.sides[i];
  }
  return nullptr;
}

// How many times as good as the other side Upcall is, where both were measured.
std::optional<double> standing(const Target& target, const PeersTable& table, const PeersTable::Row& row) {
  const Runs* upcall = find_side(table, row, "upcall");
  const Runs* other = find_side(table, row, target.against);
  if (upcall == nullptr || other == nullptr) return std::nullopt;
  bool more_is_better = row.benchmark->more_is_better() && *target.detail == '\0';
  auto value = [&](const Runs& runs) {
    return *target.detail == '\0' ? runs.median() : runs.median_of(target.detail);
  };
  double ratio = more_is_better ? value(*upcall) / value(*other) : value(*other) / value(*upcall);
  return std::isfinite(ratio) ? std::optional(ratio) : std::nullopt;
}

std::string title_of(const PeersTable& table, std::string_view key) {
  for (const Side& side : table.sides) {
    if (side.key == key) return side.title;
  }
  return std::string(key);
}

std::string what(const Target& target) { return *target.detail == '\0' ? "" : "p99, "; }

void print_trimmed(const std::string& line) {
  fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
}

std::string cell(const Side& side, const Runs& runs) { return side.left_out.empty() ? spread(runs) : "-"; }

void print_rows(const PeersTable& table) {
  std::string head = fmt::format("{:<17}", "");
  for (const auto& row : table.rows)
    head += fmt::format(" {:<24}", row.benchmark->name + ", " + row.benchmark->unit);
  print_trimmed(head);
  for (size_t i = 0; i < table.sides.size(); ++i) {
    std::string line = fmt::format("{:<17}", table.sides[i].title);
    for (const auto& row : table.rows) line += fmt::format(" {:<24}", cell(table.sides[i], row.sides[i]));
    // A run of any benchmark tells the version.
    if (!table.rows.empty()) line += " " + table.rows[0].sides[i].runtime;
    print_trimmed(line);
  }
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < table.sides.size(); ++i) {
      if (!row.sides[i].error.empty())
        fmt::print("  {} on {}: {}\n", row.benchmark->name, table.sides[i].title, row.sides[i].error);
    }
  }
}

void print_latencies(const PeersTable& table) {
  fmt::print("\np50/p99/p99.9 in ms; CPU time of the server in us a request\n");
  for (size_t i = 0; i < table.sides.size(); ++i) {
    std::string line = fmt::format("{:<17}", table.sides[i].title);
    for (const auto& row : table.rows) {
      const Runs& runs = row.sides[i];
      std::string text =
          runs.good() ? fmt::format("{}; {}", latencies_ms(runs), figure(runs.median_of("server_cpu_us")))
                      : "-";
      line += fmt::format(" {:<24}", text);
    }
    print_trimmed(line);
  }
}

void print_targets(const PeersTable& table) {
  for (const auto& row : table.rows) {
    for (const Target& target : kTargets) {
      if (row.benchmark->name != target.benchmark) continue;
      auto ratio = standing(target, table, row);
      if (!ratio) continue;
      fmt::print("  {}: {}Upcall beside {}: {:.2f}x   >= {}x  {}\n", target.benchmark, what(target),
                 title_of(table, target.against), *ratio, target.least,
                 *ratio >= target.least ? "met" : "missed");
    }
  }
}

Json row_json(const PeersTable& table, const PeersTable::Row& row) {
  Json result = {{"name", row.benchmark->name}, {"unit", row.benchmark->unit}};
  for (size_t i = 0; i < table.sides.size(); ++i) {
    const Side& side = table.sides[i];
    if (side.left_out.empty()) {
      result[side.key] = runs_json(row.sides[i]);
    } else {
      result[side.key] = {{"left_out", side.left_out}};
    }
  }
  for (const Target& target : kTargets) {
    if (row.benchmark->name != target.benchmark) continue;
    if (auto ratio = standing(target, table, row)) {
      result["targets"].push_back({{"against", target.against},
                                   {"of", *target.detail == '\0' ? "value" : target.detail},
                                   {"ratio", *ratio},
                                   {"target", target.least},
                                   {"met", *ratio >= target.least}});
    }
  }
  return result;
}

}  // namespace

void print_peers(const PeersReport& report) {
  fmt::print("One processor, pinned to CPU {}; median (min-max) of {} runs each, in alternation\n\n",
             report.cpu, report.runs);
  for (const PeersTable& table : report.tables) {
    print_rows(table);
    if (table.kind == Benchmark::Peers::echo) print_latencies(table);
    print_targets(table);
    fmt::print("\n");
  }
  for (const PeersTable& table : report.tables) {
    for (const auto& row : table.rows) fmt::print("{}: {}\n", row.benchmark->name, row.benchmark->what);
  }
  print_machine(report.date, report.load);
}

std::string peers_json(const PeersReport& report) {
  Json document = machine_json("upcall-bench-peers", report.date, report.load, report.runs);
  document["cpu"] = report.cpu;
  document["results"] = Json::array();
  for (const PeersTable& table : report.tables) {
    for (const auto& row : table.rows) document["results"].push_back(row_json(table, row));
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace upcall::tool
