// What `upcall bench` shows and keeps.
#include "bench_report.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "bench_details.h"
#include "failure.h"
#include "revision.h"

namespace upcall::tool {
namespace {

using Json = nlohmann::ordered_json;
using Rule = Benchmark::Rule;

constexpr const char* kFormat = "upcall-bench";
constexpr int kFormatVersion = 1;
// Above this load before the first run, other programs take a visible part of two CPUs.
constexpr double kQuietLoad = 0.5;

std::string ratio_text(const Row& row) {
  if (!row.good()) return "-";
  bool nothing = (row.benchmark->more_is_better() ? row.kernel : row.upcall).median() == 0;
  if (nothing && row.benchmark->rule != Rule::at_most_added) return "-";
  if (row.benchmark->rule != Rule::at_most_added) {
    double ratio = row.ratio();
    return ratio < 10 ? fmt::format("{:.2f}x", ratio) : fmt::format("{:.1f}x", ratio);
  }
  return fmt::format("{}{} {}", row.added() < 0 ? "" : "+", figure(row.added()), row.benchmark->unit);
}

std::string target_text(const Benchmark& b) {
  switch (b.rule) {
    case Rule::none:
      return "";
    case Rule::times_faster:
    case Rule::times_less:
    case Rule::times_more:
      return fmt::format(">= {}x", b.target);
    case Rule::at_most_added:
      return fmt::format("<= +{} {}", b.target, b.unit);
    case Rule::at_most:
      return fmt::format("<= {} {}", b.target, b.unit);
    case Rule::at_most_times:
      return fmt::format("<= {}x the time", b.target);
    case Rule::share_and_added:
      return fmt::format("<= 1.05x the time + {} {}", b.target, b.unit);
    case Rule::at_most_bare:
      return fmt::format("<= {}x a bare call", b.target);
  }
  return "";
}

std::string verdict(const Row& row, bool one_processor) {
  if (!one_processor || row.benchmark->rule == Rule::none) return "";
  return target_text(*row.benchmark) + (row.good() ? (row.met() ? "  met" : "  missed") : "  not measured");
}

std::string processors_text(const Section& section) {
  if (section.cpus.size() == 1) return fmt::format("One processor, pinned to CPU {}", section.cpus[0]);
  return fmt::format("{} processors, CPUs {}", section.cpus.size(), fmt::join(section.cpus, ", "));
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string kernel_release() {
  utsname name = {};
  uname(&name);
  return name.release;
}

Json row_json(const Row& row, bool one_processor) {
  Json result = {{"name", row.benchmark->name},
                 {"unit", row.benchmark->unit},
                 {"kernel_threads", runs_json(row.kernel)},
                 {"upcall", runs_json(row.upcall)}};
  if (row.good() && std::isfinite(row.ratio())) result["ratio"] = row.ratio();
  if (row.good()) result["added"] = row.added();
  if (row.benchmark->rule != Rule::none) {
    result["target"] = target_text(*row.benchmark);
    if (row.good() && one_processor) result["met"] = row.met();
  }
  if (auto further = further_target(row); further && one_processor)
    result["further"] = {{"what", further->what},
                         {"value", further->value},
                         {"target", further->target},
                         {"met", further->met}};
  return result;
}

Json parse_report(const std::string& text) { return Json::parse(text, nullptr, false); }

double median_of(const Json& row, const char* side) {
  if (!row.contains(side) || !row[side].is_object()) return 0;
  auto median = row[side].find("median");
  return median != row[side].end() && median->is_number() ? median->get<double>() : 0;
}

// The earlier row of the same benchmark on as many processors, null when there is none.
Json find_row(const Json& report, size_t processors, const std::string& name) {
  for (const auto& section : report["sections"]) {
    if (section.value("processors", size_t{0}) != processors) continue;
    for (const auto& row : section["results"]) {
      if (row.value("name", "") == name) return row;
    }
  }
  return nullptr;
}

std::string change(double before, const Runs& now) {
  if (before <= 0) return "-";
  if (!now.good()) return figure(before) + " -> -";
  return fmt::format("{} -> {} ({:+.1f} %)", figure(before), figure(now.median()),
                     100 * (now.median() / before - 1));
}

}  // namespace

std::string figure(double value) {
  double size = value < 0 ? -value : value;
  return size < 10    ? fmt::format("{:.2f}", value)
         : size < 100 ? fmt::format("{:.1f}", value)
                      : fmt::format("{:.0f}", value);
}

std::string spread(const Runs& runs) {
  if (!runs.error.empty()) return runs.at_limit ? "cannot" : "failed";
  return fmt::format("{} ({}-{})", figure(runs.median()), figure(runs.least()), figure(runs.most()));
}

Json runs_json(const Runs& runs) {
  Json result;
  result["values"] = runs.values;
  if (!runs.values.empty()) {
    result["median"] = runs.median();
    result["min"] = runs.least();
    result["max"] = runs.most();
  }
  if (!runs.runtime.empty()) result["runtime"] = runs.runtime;
  for (const auto& [name, values] : runs.details) result["details"][name] = values;
  if (!runs.error.empty()) {
    result["error"] = runs.error;
    result["at_limit"] = runs.at_limit;
  }
  return result;
}

Json machine_json(const std::string& format, const std::string& date, const std::string& load, int runs) {
  return {{"format", format},
          {"version", kFormatVersion},
          {"date", date},
          {"upcall", UPCALL_VERSION},
          {"revision", UPCALL_REVISION},
          {"kernel", kernel_release()},
          {"cpu_model", cpu_model()},
          {"cpus_online", sysconf(_SC_NPROCESSORS_ONLN)},
          {"load_before", load},
          {"runs", runs}};
}

void print_machine(const std::string& date, const std::string& load) {
  fmt::print("{}, Linux {}, {} CPUs, {}\n", cpu_model(), kernel_release(), sysconf(_SC_NPROCESSORS_ONLN),
             date);
  if (strtod(load.c_str(), nullptr) > kQuietLoad) {
    fmt::print(
        "The machine was not quiet (load {} before the first run): trust the ratios, less the figures.\n",
        load);
  }
}

void print_report(const Report& report) {
  for (const auto& section : report.sections) {
    bool one = section.cpus.size() == 1;
    fmt::print("{}; median (min-max) of {} runs each way, in alternation\n\n", processors_text(section),
               report.runs);
    fmt::print("{:<17} {:<5}  {:<24} {:<24} {:>9}   {}\n", "benchmark", "unit", "kernel threads", "Upcall",
               "ratio", one ? "target" : "");
    for (const auto& row : section.rows) {
      std::string line =
          fmt::format("{:<17} {:<5}  {:<24} {:<24} {:>9}   {}", row.benchmark->name, row.benchmark->unit,
                      spread(row.kernel), spread(row.upcall), ratio_text(row), verdict(row, one));
      fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
    }
    for (const auto& row : section.rows) {
      if (row.good()) fmt::print("{}", details_text(row));
      if (!row.kernel.error.empty())
        fmt::print("  {} on kernel threads: {}\n", row.benchmark->name, row.kernel.error);
      if (!row.upcall.error.empty())
        fmt::print("  {} on Upcall: {}\n", row.benchmark->name, row.upcall.error);
    }
    auto floor = [](const Runs& runs) {
      return runs.good() ? spread(runs) + " ns" : "failed: " + runs.error;
    };
    fmt::print("\nfloors: procedure call {}, system call (getppid) {}\n\n", floor(section.floor_call),
               floor(section.floor_syscall));
  }
  print_machine(report.date, report.load);
}

std::string report_json(const Report& report) {
  Json document = machine_json(kFormat, report.date, report.load, report.runs);
  document["sections"] = Json::array();
  for (const auto& section : report.sections) {
    Json part = {{"processors", section.cpus.size()}, {"cpus", section.cpus}};
    part["results"] = Json::array();
    for (const auto& row : section.rows) part["results"].push_back(row_json(row, section.cpus.size() == 1));
    part["floors"] = {{"procedure_call_ns", runs_json(section.floor_call)},
                      {"getppid_ns", runs_json(section.floor_syscall)}};
    document["sections"].push_back(std::move(part));
  }
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void check_report_json(const std::string& file, const std::string& text) {
  Json report = parse_report(text);
  auto refuse = [&](const std::string& why) {
    throw Failure(kUsage,
                  fmt::format("bench: --compare: '{}' {}; accepted: a file written by 'upcall bench --json'",
                              file, why));
  };
  if (!report.is_object() || !report.contains("format") || report["format"] != kFormat)
    refuse("is no benchmark report");
  if (!report.contains("version") || report["version"] != kFormatVersion)
    refuse("has another version of the format");
  if (!report.contains("sections") || !report["sections"].is_array()) refuse("has no sections");
  for (const auto& section : report["sections"]) {
    bool whole = section.is_object() && section.contains("results") && section["results"].is_array() &&
                 section.contains("processors") && section["processors"].is_number_unsigned();
    if (!whole) refuse("has a damaged section");
    for (const auto& row : section["results"]) {
      if (!row.is_object() || !row.contains("name") || !row["name"].is_string())
        refuse("has a damaged result");
    }
  }
}

void print_comparison(const Report& report, const std::string& file, const std::string& earlier) {
  Json before = parse_report(earlier);
  auto text = [&](const char* key) {
    return before.contains(key) && before[key].is_string() ? before[key].get<std::string>()
                                                           : std::string("unknown");
  };
  fmt::print("\nCompared with {} ({}, revision {}); medians\n\n", file, text("date"), text("revision"));
  if (text("cpu_model") != cpu_model() || text("kernel") != kernel_release()) {
    fmt::print("It was made on another machine or kernel ({}, Linux {}).\n\n", text("cpu_model"),
               text("kernel"));
  }
  fmt::print("{:<17} {:>10} {:<5}  {:<32} {:<32}\n", "benchmark", "processors", "unit", "kernel threads",
             "Upcall");
  for (const auto& section : report.sections) {
    for (const auto& row : section.rows) {
      Json old = find_row(before, section.cpus.size(), row.benchmark->name);
      fmt::print("{:<17} {:>10} {:<5}  {:<32} {}\n", row.benchmark->name, section.cpus.size(),
                 row.benchmark->unit, change(median_of(old, "kernel_threads"), row.kernel),
                 change(median_of(old, "upcall"), row.upcall));
    }
  }
}

}  // namespace upcall::tool
