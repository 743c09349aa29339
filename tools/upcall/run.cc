#include "run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "environment.h"
#include "failure.h"
#include "install_paths.h"
#include "program.h"

namespace upcall::tool {

void run_program(const RunSettings& settings, const std::vector<std::string>& command) {
  Environment environment = Environment::inherited();
  apply_settings(settings, environment);
  if (command.empty()) {
    throw Failure(kUsage, "run: no program given; usage: upcall run [OPTIONS] [--] PROGRAM [ARGS]");
  }
  Program program = check_program(command[0]);
  // The process that may write the statistics file: ours, since exec keeps the id; children have others.
  environment.set("UPCALL_STATS_PID", std::to_string(getpid()));
  environment.set("LD_PRELOAD", preload_list(find_library(), environment.get("LD_PRELOAD")));
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execve(program.path.c_str(), arguments.data(), environment.pointers().data());
  throw Failure(errno == ENOENT ? kNotFound : kCannotRun,
                fmt::format("cannot run '{}': {}", program.path, strerror(errno)));
}

}  // namespace upcall::tool
