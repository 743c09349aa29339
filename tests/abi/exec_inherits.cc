// abi: threads=1 status=9
// execve(2): kept: pid, pending signals (of the calling thread and the process), mask, ignored signals, alarm and interval
// timers, record locks, umask, directory, descriptors. Not kept: threads, handlers, alternate stack, timers of timer_create,
// descriptors that close on exec, the name. From a thread that is not main, with others in every state.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "process.h"

namespace {

char name[] = "/tmp/abi_exec_XXXXXX";

int second_life(char** arguments) {
  const pid_t before = atoi(arguments[2]);
  const int kept = atoi(arguments[3]), closed = atoi(arguments[4]);
  CHECK(getpid() == before && gettid() == before);
  CHECK_EQ(kernel_threads(), 1);
  sigset_t mask, pending;
  CHECK_EQ(sigprocmask(SIG_SETMASK, nullptr, &mask), 0);
  CHECK_EQ(sigpending(&pending), 0);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (signal == 32 || signal == 33) continue;
    const bool blocked = signal == SIGUSR1 || signal == SIGUSR2 || signal == SIGRTMIN + 2;
    CHECK_EQ(sigismember(&mask, signal), blocked);
    if (sigismember(&pending, signal) != blocked)
      FAIL("signal %d is%s pending", signal, blocked ? " not" : "");
  }
  const sigset_t queued = signal_set({SIGRTMIN + 2});
  siginfo_t info;
  const timespec at_once = {};
  for (int i = 0; i < 3; ++i) {
    CHECK_EQ(sigtimedwait(&queued, &info, &at_once), SIGRTMIN + 2);
    CHECK(info.si_value.sival_int == 100 + i && info.si_code == SI_QUEUE && info.si_pid == before);
  }
  CHECK_EQ(sigtimedwait(&queued, &info, &at_once), -1);
  stack_t stack;
  CHECK_EQ(sigaltstack(nullptr, &stack), 0);
  CHECK_EQ(stack.ss_flags, SS_DISABLE);
  CHECK(alarm(0) > 900);
  itimerval every;
  CHECK_EQ(getitimer(ITIMER_PROF, &every), 0);
  CHECK_EQ(every.it_interval.tv_sec, 500);
  itimerspec left;
  CHECK_EQ(syscall(SYS_timer_gettime, 0, &left), -1);
  char path[64], called[17] = {};
  CHECK(getcwd(path, sizeof path) != nullptr && strcmp(path, "/usr") == 0);
  CHECK_EQ(umask(0), 031);
  CHECK_EQ(prctl(PR_GET_NAME, called), 0);
  CHECK(strcmp(called, "exec_inherits") == 0);
  CHECK_EQ(fcntl(kept, F_GETFD), 0);
  CHECK_ERRNO(fcntl(closed, F_GETFD), EBADF);
  // The lock is this process's still: not in its own way, but in a child's.
  run_child([&] {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    CHECK_ERRNO(fcntl(kept, F_SETLK, &lock), EAGAIN);
  });
  join(start([] {}));
  CHECK_EQ(sigpending(&pending), 0);
  CHECK(sigismember(&pending, SIGUSR1) == 1 && sigismember(&pending, SIGUSR2) == 1);
  return 9;
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) return second_life(arguments);
  const sigset_t mask = signal_set({SIGUSR1, SIGUSR2, SIGRTMIN + 2});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &mask, nullptr), 0);  // everywhere
  new Crowd;
  const std::string self = executable_directory() + "/exec_inherits";
  install(SIGHUP, [](int) {});
  alarm(1000);
  const itimerval every = {{500, 0}, {500, 0}};
  CHECK_EQ(setitimer(ITIMER_PROF, &every, nullptr), 0);
  timer_t timer;
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGTERM;
  CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  const itimerspec later = {{}, to_timespec(1000 * kSecond)};
  CHECK_EQ(chdir("/usr"), 0);
  umask(031);
  const int kept = mkstemp(name), closed = open("/dev/null", O_RDONLY | O_CLOEXEC);
  unlink(name);
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  CHECK_EQ(fcntl(kept, F_SETLK, &lock), 0);
  start([&] {
    static char other[32768];
    stack_t stack = {};
    stack.ss_sp = other;
    stack.ss_size = sizeof other;
    CHECK_EQ(sigaltstack(&stack, nullptr), 0);
    CHECK_EQ(prctl(PR_SET_NAME, "another"), 0);
    raise(SIGUSR1);
    CHECK_EQ(kill(getpid(), SIGUSR2), 0);
    for (int i = 0; i < 3; ++i)
      CHECK_EQ(pthread_sigqueue(pthread_self(), SIGRTMIN + 2, {.sival_int = 100 + i}), 0);
    CHECK_EQ(timer_settime(timer, 0, &later, nullptr), 0);
    const std::string pid = std::to_string(getpid()), first = std::to_string(kept),
                      second = std::to_string(closed);
    execl(self.c_str(), "anything", "again", pid.c_str(), first.c_str(), second.c_str(), nullptr);
    FAIL("exec: errno %d", errno);
  });
  for (;;) pause();
}
