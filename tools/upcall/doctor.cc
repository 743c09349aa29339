#include "doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "child.h"
#include "environment.h"
#include "failure.h"
#include "install_paths.h"
#include "program.h"

namespace upcall::tool {
namespace {

using Level = Finding::Level;

constexpr int kTrialSeconds = 20;

const char* level_name(Level level) {
  return level == Level::good ? "ok" : level == Level::note ? "note" : "fails";
}

std::string sentence(const Finding& f) {
  std::string text = f.found;
  if (!f.used.empty()) text += "; " + f.used;
  if (!f.cost.empty()) text += fmt::format("{} {}", f.level == Level::bad ? ";" : "; cost:", f.cost);
  return text;
}

void print_text(const std::vector<Finding>& findings, const std::string& verdict) {
  size_t width = 0;
  for (const auto& f : findings) width = std::max(width, f.name.size());
  for (const auto& f : findings)
    fmt::print("{:<5}  {:<{}}  {}\n", level_name(f.level), f.name, width, sentence(f));
  fmt::print("\n{}\n", verdict);
}

void print_json(const std::vector<Finding>& findings, bool ok, const std::string& program) {
  nlohmann::ordered_json document = {{"ok", ok}, {"upcall", UPCALL_VERSION}};
  if (!program.empty()) document["program"] = program;
  for (const auto& f : findings) {
    document["checks"].push_back({{"name", f.name},
                                  {"level", level_name(f.level)},
                                  {"found", f.found},
                                  {"used", f.used},
                                  {"cost", f.cost}});
  }
  fmt::print("{}\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

// A real start: only that shows whether the loader takes the library and the runtime comes up.
Finding trial_run(const std::string& library) {
  Finding f = {Level::good, "trial run", "", "", ""};
  Environment environment = Environment::inherited();
  environment.remove_upcall();
  environment.set("LD_PRELOAD", preload_list(library, environment.get("LD_PRELOAD")));
  ChildResult child =
      run_child({find_bench_worker(), "null_fork", "--scale", "0.01"}, environment, {}, kTrialSeconds);
  auto answer = nlohmann::json::parse(child.output, nullptr, false);
  if (!child.succeeded()) {
    f.found = child.failure(kTrialSeconds);
  } else if (!answer.is_object() || !answer.value("upcall", false)) {
    f.found = "the loader left the runtime out: " + child.errors.substr(0, child.errors.find('\n'));
  } else {
    f.found = fmt::format("{} threads created and joined", answer.value("count", 0L));
    f.used = "the runtime works here";
    return f;
  }
  f.level = Level::bad;
  f.cost = "programs cannot run on Upcall";
  return f;
}

// What the loader cannot find, by its own account (what ldd does).
std::string missing_libraries(const Program& program) {
  if (program.loader.empty()) return "";
  Environment environment = Environment::inherited();
  environment.remove_upcall();
  environment.set("LD_TRACE_LOADED_OBJECTS", "1");
  ChildResult child = run_child({program.loader, program.chain.back()}, environment, {}, kTrialSeconds);
  std::string missing;
  std::istringstream lines(child.output);
  for (std::string line; std::getline(lines, line);) {
    size_t arrow = line.find(" => not found");
    size_t begin = line.find_first_not_of(" \t");
    if (arrow != std::string::npos)
      missing += (missing.empty() ? "" : ", ") + line.substr(begin, arrow - begin);
  }
  if (missing.empty() && !child.succeeded()) return child.failure(kTrialSeconds);
  return missing;
}

}  // namespace

std::vector<Finding> probe_runtime() {
  std::vector<Finding> findings;
  try {
    std::string library = find_library();
    findings.push_back({Level::good, "libupcall.so", "found", library + " is preloaded", ""});
    findings.push_back(trial_run(library));
  } catch (const Failure& failure) {
    findings.push_back({Level::bad, "libupcall.so", failure.what(), "", "programs cannot run on Upcall"});
  }
  return findings;
}

std::vector<Finding> probe_program(const std::string& name) {
  Finding f = {Level::good, "program", "", "", ""};
  try {
    Program program = check_program(name);
    f.found = program.path;
    for (size_t i = 1; i < program.chain.size(); ++i) f.found += ", run by " + program.chain[i];
    std::string missing = missing_libraries(program);
    if (missing.empty()) {
      f.used = "dynamically linked x86-64 program, can be preloaded";
    } else {
      f.level = Level::bad;
      f.cost = "it cannot start, on Upcall or without: libraries not found: " + missing;
    }
  } catch (const Failure& failure) {
    f.level = Level::bad;
    f.found = failure.what();
    f.cost = "this program cannot run on Upcall";
  }
  return {f};
}

int doctor(const std::string& program, bool json) {
  catch_interrupts();
  std::vector<Finding> findings = probe_machine();
  auto add = [&](std::vector<Finding> more) { findings.insert(findings.end(), more.begin(), more.end()); };
  add(probe_descriptors());
  add(probe_limits());
  add(probe_others());
  add(probe_runtime());
  if (!program.empty()) add(probe_program(program));
  auto failing =
      std::count_if(findings.begin(), findings.end(), [](const auto& f) { return f.level == Level::bad; });
  std::string what = program.empty() ? "Programs" : "'" + program + "'";
  if (json) {
    print_json(findings, failing == 0, program);
  } else {
    print_text(findings,
               failing == 0
                   ? fmt::format("{} can run on Upcall here.", what)
                   : fmt::format("{} cannot run on Upcall here: see the lines marked 'fails'.", what));
  }
  return failing == 0 ? 0 : kFailed;
}

}  // namespace upcall::tool
