// abi: threads=1 status=33
// exec from a thread that is not main, with others alive: the process keeps its id and goes on as the new program,
// with the original affinity and the caller's signal mask, ignored signals and no handlers; it can make threads.
#include <sched.h>

#include "abi.h"

static std::string affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::string text;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) text += std::to_string(i) + ",";
  return text;
}

static int second_life(char** arguments) {
  CHECK(affinity() == arguments[2]);
  CHECK_EQ(getpid(), atoi(arguments[3]));
  CHECK_EQ(gettid(), getpid());
  sigset_t mask;
  CHECK_EQ(sigprocmask(SIG_SETMASK, nullptr, &mask), 0);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (signal == 32 || signal == 33) continue;
    CHECK_EQ(sigismember(&mask, signal), signal == SIGUSR2 ? 1 : 0);
    struct sigaction action;
    CHECK_EQ(sigaction(signal, nullptr, &action), 0);
    if (signal == SIGHUP)
      CHECK(action.sa_handler == SIG_IGN);
    else if (signal != SIGINT && signal != SIGQUIT)  // the shell that started the test may ignore those
      CHECK(action.sa_handler == SIG_DFL);
  }
  int result = 0;
  join(start([&result] { result = 33; }));
  return result;
}

int main(int count, char** arguments) {
  if (count > 1) return second_life(arguments);
  install(SIGUSR1, [](int) {});
  install(SIGHUP, SIG_IGN);
  for (int i = 0; i < 3; ++i)
    start([] {
      for (;;) burn(kMs);
    });
  for (int i = 0; i < 3; ++i) start([] { nap(1000 * kSecond); });
  settle();
  const std::string cpus = affinity(), pid = std::to_string(getpid());
  start([&] {
    const sigset_t mask = signal_set({SIGUSR2});
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    execl("/proc/self/exe", arguments[0], "again", cpus.c_str(), pid.c_str(), nullptr);
    FAIL("exec: errno %d", errno);
  });
  for (;;) pause();
}
