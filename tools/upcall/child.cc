#include "child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "failure.h"

namespace upcall::tool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostOutput = 1 << 20;
constexpr std::array<int, 3> kInterrupts = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t g_interrupt = 0;

void note_interrupt(int signal) { g_interrupt = signal; }

// A file descriptor that closes itself.
class Fd {
 public:
  explicit Fd(int value = -1) : value_(value) {}
  ~Fd() { reset(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  void reset(int value = -1) {
    if (value_ >= 0) close(value_);
    value_ = value;
  }
  int get() const { return value_; }

 private:
  int value_;
};

struct Pipe {
  Pipe() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) throw Failure(kFailed, fmt::format("pipe: {}", strerror(errno)));
    read.reset(fds[0]);
    write.reset(fds[1]);
  }
  Fd read;
  Fd write;
};

// Takes what is there; closes at the end of the stream.
void drain(Fd& fd, std::string& to) {
  char buffer[4096];
  ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
  if (n > 0) {
    if (to.size() < kMostOutput) to.append(buffer, static_cast<size_t>(n));
  } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
    fd.reset();
  }
}

[[noreturn]] void become(char* const* arguments, char* const* environment, const std::vector<int>& cpus,
                         const sigset_t& mask, pid_t parent, const Pipe& output, const Pipe& errors) {
  // A killed `upcall` leaves no benchmark running.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kFailed);
  dup2(output.write.get(), STDOUT_FILENO);
  dup2(errors.write.get(), STDERR_FILENO);
  int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  if (!cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu : cpus) CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
      dprintf(STDERR_FILENO, "cannot use CPU %d: %s\n", cpus[0], strerror(errno));
      _exit(kFailed);
    }
  }
  for (int signal : kInterrupts) ::signal(signal, SIG_DFL);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execve(arguments[0], arguments, environment);
  dprintf(STDERR_FILENO, "cannot start %s: %s\n", arguments[0], strerror(errno));
  _exit(kCannotRun);
}

void end_child(pid_t pid) {
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Until the process has ended, or the deadline, or an interrupt.
void wait_for_end(pid_t pid, Fd& process, Pipe& output, Pipe& errors, const sigset_t& waiting_mask,
                  Clock::time_point deadline, ChildResult& result) {
  while (true) {
    if (g_interrupt != 0) {
      end_child(pid);
      throw Interrupted(g_interrupt);
    }
    auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      result.timed_out = true;
      kill(pid, SIGKILL);
      return;
    }
    timespec timeout = {left / 1'000'000'000, left % 1'000'000'000};
    std::array<pollfd, 3> fds = {
        {{process.get(), POLLIN, 0}, {output.read.get(), POLLIN, 0}, {errors.read.get(), POLLIN, 0}}};
    if (ppoll(fds.data(), fds.size(), &timeout, &waiting_mask) <= 0) continue;
    if (fds[1].revents != 0) drain(output.read, result.output);
    if (fds[2].revents != 0) drain(errors.read, result.errors);
    if (fds[0].revents != 0) return;
  }
}

sigset_t interrupts() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : kInterrupts) sigaddset(&set, signal);
  return set;
}

}  // namespace

bool ChildResult::succeeded() const { return !timed_out && WIFEXITED(status) && WEXITSTATUS(status) == 0; }

std::string ChildResult::failure(int limit_seconds) const {
  std::string first = errors.substr(0, errors.find('\n'));
  std::string why = first.empty() ? "" : ": " + first;
  if (timed_out) return fmt::format("no end within {} s{}", limit_seconds, why);
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({}){}", WTERMSIG(status), strsignal(WTERMSIG(status)), why);
  return fmt::format("exit status {}{}", WEXITSTATUS(status), why);
}

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  for (int signal : kInterrupts) {
    struct sigaction old = {};
    sigaction(signal, nullptr, &old);
    // Ignored by whoever started us (nohup): stays so.
    if (old.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  sigset_t set = interrupts();
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

void die_by(int signal) {
  ::signal(signal, SIG_DFL);
  raise(signal);
  sigset_t set = interrupts();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  _exit(128 + signal);
}

ChildResult run_child(const std::vector<std::string>& command, const Environment& environment,
                      const std::vector<int>& cpus, int limit_seconds) {
  ChildResult result;
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> variables = environment.pointers();
  Pipe output;
  Pipe errors;
  sigset_t current;
  sigprocmask(SIG_SETMASK, nullptr, &current);
  sigset_t waiting = current;
  for (int signal : kInterrupts) sigdelset(&waiting, signal);
  pid_t parent = getpid();
  auto begin = Clock::now();
  pid_t pid = fork();
  if (pid < 0) throw Failure(kFailed, fmt::format("fork: {}", strerror(errno)));
  if (pid == 0) become(arguments.data(), variables.data(), cpus, waiting, parent, output, errors);
  output.write.reset();
  errors.write.reset();
  Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (process.get() < 0) {
    int error = errno;
    end_child(pid);
    throw Failure(kFailed, fmt::format("pidfd_open: {}; Linux 5.3 or later is needed", strerror(error)));
  }
  wait_for_end(pid, process, output, errors, waiting, begin + std::chrono::seconds(limit_seconds), result);
  result.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  while (waitpid(pid, &result.status, 0) < 0 && errno == EINTR) {
  }
  // What is still in the pipes; a grandchild that keeps one open must not hold us.
  for (auto* pipe : {&output, &errors}) {
    if (pipe->read.get() >= 0) fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK);
    std::string& to = pipe == &output ? result.output : result.errors;
    for (size_t before = to.size() + 1; pipe->read.get() >= 0 && before != to.size();) {
      before = to.size();
      drain(pipe->read, to);
    }
  }
  return result;
}

}  // namespace upcall::tool
