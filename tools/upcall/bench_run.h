// One run of one benchmark in a process of its own, and the line that says how far it all is.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bench.h"
#include "environment.h"

namespace upcall::tool {

inline constexpr int kRunSeconds = 120;

struct Command {
  std::vector<std::string> words;
  Environment environment;
  bool on_upcall = false;
};

// Starts `command`, which prints the line of results of the benchmark `name`, and adds these to `runs`. Does nothing where
// `runs` has an error: who failed or met a limit will do so again, and a failure may take the whole time limit.
void run_once(const Command& command, const std::string& name, const std::vector<int>& cpus, Runs& runs);

// One run of a benchmark with two processes.
struct Paired {
  std::string name;
  std::string worker;  // the client
  std::string scale;
  std::vector<std::string> server;  // the command that is measured; the client adds what it is to be
  Environment environment;          // of both
  bool on_upcall = false;
};

// The server on `cpus`, the client on the first usable CPU that is none of them.
void run_with_client(const Paired& paired, const std::vector<int>& cpus, Runs& runs);
// `upcall run` of `program` with so many processors: what only this process of several is to have.
std::vector<std::string> on_upcall_words(size_t processors, const std::string& program);

// One line on standard error, once the user has waited long enough to wonder.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(const std::string& step, int run, int runs);

 private:
  std::chrono::steady_clock::time_point begin_;
  bool terminal_;
  bool shown_ = false;
  std::string step_;
};

}  // namespace upcall::tool
