// abi: threads=4
// signal(7): sigwaitinfo, sigtimedwait, sigsuspend and pause end with EINTR after a handler of another signal, whatever
// SA_RESTART says; sigwait goes on (POSIX: it does not answer EINTR). Signals that are ignored end none.
#include "interrupt.h"

static std::atomic<pthread_t> waiter;

int main() {
  const sigset_t set = signal_set({SIGHUP});
  CHECK_EQ(sigprocmask(SIG_BLOCK, &set, nullptr), 0);
  const timespec minutes = {1000, 0};
  const auto hang_up = [] { CHECK_EQ(pthread_kill(waiter, SIGHUP), 0); };
  const auto announced = [](auto call) {
    return [call] {
      waiter = pthread_self();
      return call();
    };
  };
  try_signals({
      {"sigwaitinfo", announced([&] { return with_errno(sigwaitinfo(&set, nullptr)); }), hang_up, SIGHUP,
       Restart::never},
      {"sigtimedwait", announced([&] { return with_errno(sigtimedwait(&set, nullptr, &minutes)); }), hang_up,
       SIGHUP, Restart::never},
      {"sigwait", announced([&] {
         int signal = 0;
         const int error = sigwait(&set, &signal);
         return error ? static_cast<long>(-error) : static_cast<long>(signal);
       }),
       hang_up, SIGHUP, Restart::hidden},
  });
  install(SIGALRM, [](int) { ++g_handled; });
  const auto alarm_it = [] {
    // Until it has arrived: the thread may not be in the call yet.
    for (int before = g_handled; g_handled == before; nap(kMs / 2)) pthread_kill(waiter, SIGALRM);
  };
  try_signals({
      {"pause", announced([] { return with_errno(pause()); }), alarm_it, -EINTR, Restart::never},
      {"sigsuspend", announced([] {
         const sigset_t none = signal_set({});
         return with_errno(sigsuspend(&none));
       }),
       alarm_it, -EINTR, Restart::never},
  });
}
