#include "bench_run.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "child.h"
#include "install_paths.h"
#include "settings.h"

namespace upcall::tool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWorkerAtLimit = 3;
constexpr auto kSilence = std::chrono::seconds(2);

}  // namespace

void run_once(const Command& command, const std::string& name, const std::vector<int>& cpus, Runs& runs) {
  if (!runs.error.empty()) return;
  ChildResult child = run_child(command.words, command.environment, cpus, kRunSeconds);
  if (!child.succeeded()) {
    runs.at_limit =
        !child.timed_out && WIFEXITED(child.status) && WEXITSTATUS(child.status) == kWorkerAtLimit;
    runs.error = runs.at_limit ? child.errors.substr(0, child.errors.find('\n')) : child.failure(kRunSeconds);
    return;
  }
  auto answer = nlohmann::json::parse(child.output, nullptr, false);
  bool whole = answer.is_object() && answer.contains("value") && answer["value"].is_number() &&
               answer.value("checked", false) && answer.value("name", "") == name;
  if (!whole) {
    runs.error = "no result: " + child.output.substr(0, 80);
  } else if (answer.value("upcall", !command.on_upcall) != command.on_upcall) {
    runs.error = command.on_upcall
                     ? "the loader left the runtime out: " + child.errors.substr(0, child.errors.find('\n'))
                     : "it ran on Upcall, not on kernel threads (is libupcall.so in /etc/ld.so.preload?)";
  } else {
    runs.values.push_back(answer["value"].get<double>());
    runs.runtime = answer.value("runtime", "");
    auto details = answer.value("details", nlohmann::json::object());
    for (const auto& [key, value] : details.items()) {
      if (value.is_number()) runs.details[key].push_back(value.get<double>());
    }
  }
}

void run_with_client(const Paired& paired, const std::vector<int>& cpus, Runs& runs) {
  std::vector<int> usable = usable_cpus();
  auto own = std::find_if(usable.begin(), usable.end(),
                          [&](int cpu) { return std::find(cpus.begin(), cpus.end(), cpu) == cpus.end(); });
  if (own == usable.end()) {
    runs.error = "the client needs a CPU beside those of the program";
    runs.at_limit = true;
    return;
  }
  std::vector<std::string> words = {paired.worker, paired.name,     "--scale",
                                    paired.scale,  "--server-cpus", fmt::format("{}", fmt::join(cpus, ",")),
                                    "--"};
  words.insert(words.end(), paired.server.begin(), paired.server.end());
  Environment environment = paired.environment;
  if (paired.on_upcall) environment.set("UPCALL_LIBRARY", find_library());
  run_once({words, environment, paired.on_upcall}, paired.name, {*own}, runs);
}

std::vector<std::string> on_upcall_words(size_t processors, const std::string& program) {
  return {own_path(), "run", "--processors", std::to_string(processors), "--", program};
}

Progress::Progress() : begin_(Clock::now()), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::show(const std::string& step, int run, int runs) {
  auto elapsed = Clock::now() - begin_;
  if (elapsed < kSilence) return;
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(elapsed).count();
  if (terminal_) {
    fmt::print(stderr, "\r\033[K{}, run {} of {}, {} s", step, run, runs, seconds);
    fflush(stderr);
    shown_ = true;
  } else if (step != step_) {
    fmt::print(stderr, "{}, {} s\n", step, seconds);
  }
  step_ = step;
}

}  // namespace upcall::tool
