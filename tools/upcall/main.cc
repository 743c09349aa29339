// The `upcall` command: reads the command line, does what it says, turns refusals into a line and a status.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench.h"
#include "child.h"
#include "doctor.h"
#include "failure.h"
#include "revision.h"
#include "run.h"

namespace upcall::tool {
namespace {

constexpr const char* kMainHelp = R"(Examples:
  upcall run pigz -k big.tar                   the program's threads become user-level threads
  upcall run --processors 1 --stats ./server   one processor; what happened, on standard error
  upcall doctor                                what this machine offers, and what it costs when missing
  upcall doctor ./server                       can this program run on Upcall?
  upcall bench null_fork yield                 both ways: kernel threads and Upcall

'upcall COMMAND --help' explains a command, 'man upcall' explains all of them.)";

constexpr const char* kRunHelp =
    R"(The program needs no change and no recompilation. It must be a dynamically linked x86-64 program,
or a script with a #! line whose interpreter is one. Its exit status is the exit status of upcall.

Examples:
  upcall run python3 -c 'import threading; print(threading.active_count())'
  upcall run --processors 2 --quantum 1ms -- ./server --verbose
  upcall run --stats-file 'stats.%p.json' make -j2

Environment: UPCALL_PROCESSORS, UPCALL_QUANTUM, UPCALL_EVENTS, UPCALL_ACTIVATIONS, UPCALL_SHARE, UPCALL_FOLLOW (0 or
1), UPCALL_STATS (0 or 1), UPCALL_STATS_FILE and UPCALL_LOG mean the same as the options, which come first (topic sched prints, at the end, the
last upcalls: who took over which processor, who was stopped). UPCALL_LIBRARY names another libupcall.so; UPCALL_SYMBOLS=off leaves
condition variables and semaphores to the C library.
Exit status: the program's; 127 no such program, 126 it cannot run on Upcall, 2 wrong usage.)";

constexpr const char* kBenchHelp =
    R"(Each benchmark is measured on kernel threads and on Upcall in alternation, every run in a fresh process,
and checks its own work. Without --processors: one pinned processor, then two if there are two CPUs.
The servers (echo, reactivity, detector, idle) are on one CPU, and their client, on kernel threads, on another.

Examples:
  upcall bench                                 everything, some 20 minutes
  upcall bench null_fork --json today.json     one of them; raw figures of every run in today.json
  upcall bench --compare today.json            and against those figures
  upcall bench memory --count 100000           more threads than most kernels allow

Exit status: 0, even when a target is missed; 1 a benchmark failed, 2 wrong usage.)";

constexpr const char* kDoctorHelp =
    R"(One line for each thing: what was found, what is used, what a missing one costs.
Exit status: 0 programs (or PROGRAM) can run on Upcall here, 1 they cannot, 2 wrong usage.)";

// CLI11's own usage lines do not know that options end at PROGRAM.
class Help : public CLI::Formatter {
 public:
  explicit Help(std::string usage) : usage_(std::move(usage)) { column_width(24); }
  std::string make_usage(const CLI::App*, std::string) const override { return "Usage: " + usage_ + "\n"; }
  // Without CLI11's mark of a flag that says no.
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, positional);
    return name.substr(0, name.find('{'));
  }

 private:
  std::string usage_;
};

struct Arguments {
  RunSettings run;
  std::vector<std::string> command;  // of run: PROGRAM [ARGS]
  std::string program;               // of doctor
  bool json = false;
  BenchOptions bench;
};

void add_run(CLI::App& app, RunSettings& run) {
  CLI::App* command = app.add_subcommand("run", "Run a program with its threads as user-level threads");
  command->formatter(std::make_shared<Help>("upcall run [OPTIONS] [--] PROGRAM [ARGS]"));
  command
      ->add_option("--processors", run.processors,
                   "Processors to use; all CPUs of the affinity mask if not given")
      ->option_text("N");
  command->add_option("--quantum", run.quantum, "Time slice when others wait: 10ms if not given; 0: none")
      ->option_text("TIME");
  command
      ->add_option("--events", run.events,
                   "How blocking that no call announces is noticed: sentinel (if not given), bpf or monitor")
      ->option_text("HOW");
  command
      ->add_option("--activations", run.activations,
                   "Kernel threads to run threads on before a warning is given: 1024 if not given")
      ->option_text("N");
  command
      ->add_option(
          "--descriptors", run.descriptors,
          "Waiting without a kernel thread each: sockets, events (pipes, too; the default) or calls (none)")
      ->option_text("HOW");
  command
      ->add_option("--share", run.share,
                   "Weight beside other programs: process (one kernel thread per processor, the default) or "
                   "threads (as many as there are threads, where allowed)")
      ->option_text("HOW");
  command
      ->add_flag(
          "--follow,!--no-follow", run.follow,
          "Whether programs that PROGRAM executes run on Upcall, too, where they get its environment (they "
          "do if not given)")
      ->disable_flag_override();
  command
      ->add_flag("--stats", run.stats,
                 "Counters and take-over latencies on standard error when the program ends")
      ->disable_flag_override();
  command
      ->add_option("--stats-file", run.stats_file,
                   "The same as JSON in FILE; %p in it becomes the process id")
      ->option_text("FILE");
  command
      ->add_option("--log", run.log,
                   "What to log on standard error: all, or patch,syscall,sched,signal,start")
      ->option_text("TOPICS");
  command->footer(kRunHelp);
}

void add_doctor(CLI::App& app, Arguments& arguments) {
  CLI::App* command =
      app.add_subcommand("doctor", "Say what this machine offers, what is used, what is missing");
  command->formatter(std::make_shared<Help>("upcall doctor [--json] [PROGRAM]"));
  command->add_flag("--json", arguments.json, "As JSON")->disable_flag_override();
  command->add_option("PROGRAM", arguments.program, "Say whether this program can run, too")
      ->option_text(" ");
  command->footer(kDoctorHelp);
}

void add_bench(CLI::App& app, BenchOptions& bench) {
  CLI::App* command = app.add_subcommand("bench", "Measure Upcall beside kernel threads");
  command->formatter(std::make_shared<Help>("upcall bench [OPTIONS] [NAME...]"));
  command->add_option("NAME", bench.names, "Benchmarks to run; all if not given")
      ->option_text(" ")
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  command->add_option("--processors", bench.processors, "Processors to use, both ways")->option_text("N");
  command->add_option("--runs", bench.runs, "Runs each way, 7 (the default) or more")->option_text("N");
  command->add_option("--cpu", bench.cpu, "CPU for runs on one processor; the last one if not given")
      ->option_text("C");
  command->add_option("--scale", bench.scale, "Longer (above 1) or shorter runs")->option_text("X");
  command->add_option("--count", bench.count, "Number of threads of memory and fork_batch")->option_text("N");
  command->add_option("--json", bench.json, "Write machine, date and the figures of every run")
      ->option_text("FILE");
  command->add_option("--compare", bench.compare, "Show the change since an earlier --json FILE")
      ->option_text("FILE");
  command
      ->add_flag("--peers", bench.peers,
                 "Stalls, echo servers and disk reads on Upcall and kernel threads, beside programs in Go, "
                 "on Tokio, "
                 "Boost.Asio and Boost.Fiber, an epoll loop and fio (./dev bench --peers builds them)")
      ->disable_flag_override();
  command->add_flag("--list", bench.list, "List the benchmarks, or those named")->disable_flag_override();
  command->footer(kBenchHelp);
}

// Where PROGRAM begins: options behind it are the program's, whatever they are called.
size_t find_program(const CLI::App& run, const std::vector<std::string>& words, size_t at) {
  while (at < words.size() && words[at].size() > 1 && words[at][0] == '-' && words[at] != "--") {
    const CLI::Option* option = run.get_option_no_throw(words[at]);
    at += option != nullptr && option->get_expected_min() > 0 ? 2 : 1;
  }
  return std::min(at, words.size());
}

// `upcall help run` is `upcall --help run`; what belongs to the program of `run` goes to arguments.command.
std::vector<std::string> split(const CLI::App& app, std::vector<std::string> words, Arguments& arguments) {
  if (!words.empty() && words[0] == "help") {
    auto known = app.get_subcommands(
        [&](const CLI::App* command) { return words.size() > 1 && command->get_name() == words[1]; });
    if (words.size() > 1 && known.empty()) {
      throw Failure(kUsage, fmt::format("help: unknown command '{}'; the commands are run, doctor and bench",
                                        words[1]));
    }
    words[0] = "--help";
  }
  size_t command = 0;
  while (command < words.size() && words[command].starts_with("-")) ++command;
  if (command >= words.size() || words[command] != "run") return words;
  size_t program = find_program(*app.get_subcommand("run"), words, command + 1);
  auto begin = words.begin() + static_cast<std::ptrdiff_t>(program);
  arguments.command.assign(begin != words.end() && *begin == "--" ? begin + 1 : begin, words.end());
  words.erase(begin, words.end());
  return words;
}

int dispatch(const CLI::App& app, const Arguments& arguments) {
  if (app.got_subcommand("run")) run_program(arguments.run, arguments.command);
  if (app.got_subcommand("doctor")) return doctor(arguments.program, arguments.json);
  return bench(arguments.bench);
}

[[noreturn]] void refuse_usage(const CLI::App& app, const std::string& message) {
  std::string name;
  if (!app.get_subcommands().empty()) name = app.get_subcommands().back()->get_name();
  throw Failure(kUsage, fmt::format("{}{}{}; see 'upcall {}{}--help'", name, name.empty() ? "" : ": ",
                                    message, name, name.empty() ? "" : " "));
}

// CLI11's messages in plain words.
[[noreturn]] void explain(const CLI::App& app, const CLI::ParseError& error) {
  auto extras = app.remaining(true);
  bool command_known = !app.get_subcommands().empty();
  if (!extras.empty() && extras[0].starts_with("-"))
    refuse_usage(app, fmt::format("unknown option {}", extras[0]));
  if (!extras.empty() && command_known)
    refuse_usage(app, fmt::format("one argument too many: '{}'", extras[0]));
  if (!extras.empty()) {
    refuse_usage(app, fmt::format("unknown command '{}'; the commands are run, doctor and bench", extras[0]));
  }
  if (!command_known) refuse_usage(app, "no command given; the commands are run, doctor and bench");
  std::string text = error.what();
  if (size_t at = text.find(" was given a disallowed flag override"); at != std::string::npos) {
    // Our flags have long names only.
    refuse_usage(app, "--" + text.substr(0, at) + ": takes no value");
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    refuse_usage(app, text.substr(0, text.find(':')) + ": needs a value");
  }
  refuse_usage(app, text);
}

// Below, an empty text means "not given".
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      for (const auto& value : option->results()) {
        if (value.empty()) refuse_usage(app, option->get_name() + ": empty value");
      }
    }
  }
}

int command_line(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Upcall runs the threads of unmodified Linux programs as user-level threads.", "upcall");
  app.formatter(std::make_shared<Help>("upcall COMMAND [OPTIONS]"));
  app.require_subcommand(1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // inherited by the commands
  app.footer(kMainHelp);
  app.set_version_flag("--version", std::string("upcall ") + UPCALL_VERSION + " (" + UPCALL_REVISION + ")");
  add_run(app, arguments.run);
  add_doctor(app, arguments);
  add_bench(app, arguments.bench);
  std::vector<std::string> words = split(app, std::vector<std::string>(argv + 1, argv + argc), arguments);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    explain(app, error);
  }
  refuse_empty_values(app);
  return dispatch(app, arguments);
}

// A full disk or a closed pipe must not look like success.
int finish(int status) {
  if (fflush(stdout) == 0 && ferror(stdout) == 0) return status;
  fmt::print(stderr, "upcall: cannot write to standard output: {}\n", strerror(errno));
  return status == 0 ? kFailed : status;
}

}  // namespace
}  // namespace upcall::tool

int main(int argc, char** argv) {
  using namespace upcall::tool;
  try {
    return finish(command_line(argc, argv));
  } catch (const Failure& failure) {
    fflush(stdout);
    fmt::print(stderr, "upcall: {}\n", failure.what());
    return failure.status();
  } catch (const Interrupted& interrupted) {
    fmt::print(stderr, "upcall: interrupted, nothing written\n");
    die_by(interrupted.signal());
  } catch (const std::exception& error) {
    fmt::print(stderr, "upcall: {}\n", error.what());
    return kFailed;
  }
}
