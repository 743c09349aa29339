#include "bench_details.h"

#include <fmt/format.h>

#include <array>
#include <numeric>

#include "bench_report.h"

namespace upcall::tool {
namespace {

// Numbers of computing threads that bench/reactivity.c has.
constexpr std::array<int, 5> kComputing = {0, 1, 4, 16, 64};
constexpr double kMostRise = 2;

double mean_of(const Runs& runs, const std::string& detail) {
  auto found = runs.details.find(detail);
  if (found == runs.details.end()) return 0;
  return std::accumulate(found->second.begin(), found->second.end(), 0.0) /
         static_cast<double>(found->second.size());
}

std::string both(const Row& row, const char* detail) {
  return fmt::format("{} and {}", figure(row.kernel.median_of(detail)), figure(row.upcall.median_of(detail)));
}

// What the figure of `memory` is made of, kernel threads and Upcall.
std::string memory_text(const Row& row) {
  return fmt::format(
      "  memory: in the process {}, in the kernel {} (idle time alone changes {});\n"
      "    beside it, fall of the machine's free memory: {}, undisturbed in {:.0f} and {:.0f} % of the "
      "runs\n",
      both(row, "process"), both(row, "kernel"), both(row, "kernel_drift"), both(row, "available"),
      100 * mean_of(row.kernel, "quiet"), 100 * mean_of(row.upcall, "quiet"));
}

std::string echo_text(const Row& row) {
  return fmt::format(
      "  {}: p50/p99/p99.9 {} and {} ms; CPU time of the server {} us a request;\n"
      "    the client had {:.0f} and {:.0f} % of its CPU\n",
      row.benchmark->name, latencies_ms(row.kernel), latencies_ms(row.upcall), both(row, "server_cpu_us"),
      row.kernel.median_of("client_busy_percent"), row.upcall.median_of("client_busy_percent"));
}

// The curve: a round trip against the number of computing threads.
std::string reactivity_text(const Row& row) {
  std::string text = fmt::format("  {}, us, beside so many computing threads:\n", row.benchmark->name);
  for (int computing : kComputing) {
    auto pair = [&](const Runs& runs) {
      return fmt::format("p50 {} p99 {}", figure(runs.median_of(fmt::format("p50_us_{}", computing))),
                         figure(runs.median_of(fmt::format("p99_us_{}", computing))));
    };
    text += fmt::format("    {:>2}: {:<24} {}\n", computing, pair(row.kernel), pair(row.upcall));
  }
  return text;
}

std::string disk_warm_text(const Row& row) {
  return fmt::format("  {}: a loop in one thread {} ns before there are others, {} ns after\n",
                     row.benchmark->name, both(row, "bare_ns"), both(row, "one_thread_ns"));
}

}  // namespace

std::optional<Further> further_target(const Row& row) {
  if (!row.benchmark->name.starts_with("reactivity_") || !row.good()) return std::nullopt;
  double unloaded = row.upcall.median_of("p50_us_0");
  double rise =
      unloaded > 0 ? row.upcall.median_of(fmt::format("p50_us_{}", kComputing.back())) / unloaded : 0;
  return Further{"p50 under load by p50 without, on Upcall", rise, fmt::format("<= {}x", kMostRise),
                 rise > 0 && rise <= kMostRise};
}

std::string details_text(const Row& row) {
  const std::string& name = row.benchmark->name;
  std::string text;
  if (name == "memory") text = memory_text(row);
  if (name.starts_with("echo_")) text = echo_text(row);
  if (name.starts_with("reactivity_")) text = reactivity_text(row);
  if (name == "disk_warm") text = disk_warm_text(row);
  if (auto further = further_target(row)) {
    text += fmt::format("    {}: {:.2f}x   {}  {}\n", further->what, further->value, further->target,
                        further->met ? "met" : "missed");
  }
  return text;
}

std::string latencies_ms(const Runs& runs) {
  return fmt::format("{:.2f}/{:.2f}/{:.2f}", runs.median_of("p50_us") / 1e3, runs.median_of("p99_us") / 1e3,
                     runs.median_of("p999_us") / 1e3);
}

}  // namespace upcall::tool
