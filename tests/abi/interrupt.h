// Calls that block, while signals come: what signal(7) says of each. Every call is tried with a signal that has no
// handler and is ignored by default (it goes on), with a handler and SA_RESTART (it goes on, or not, as listed there)
// and with a handler without SA_RESTART (EINTR).
#pragma once

#include <functional>

#include "abi.h"

namespace upcall::test {

enum class Restart { yes, never, hidden };  // hidden: the function repeats the call, its caller sees no EINTR

struct BlockingCall {
  const char* name;
  std::function<long()> call;     // its result, or -errno
  std::function<void()> release;  // lets one call return
  long result;                    // what it returns then
  Restart restart;
};

inline std::atomic<int> g_handled{0};

inline long with_errno(long result) { return result == -1 ? -errno : result; }

namespace interrupt {

struct Attempt {
  std::atomic<bool> entered{false}, returned{false};
  long result = 0;
  pthread_t thread;
};

inline void begin(Attempt& attempt, const BlockingCall& blocking) {
  attempt.thread = start([&attempt, &blocking] {
    attempt.entered = true;
    attempt.result = blocking.call();
    attempt.returned = true;
  });
  while (!attempt.entered) sched_yield();
  nap(kMs);
}

inline void goes_on(const BlockingCall& blocking, int signal, bool handled) {
  Attempt attempt;
  begin(attempt, blocking);
  for (int i = 0; i < 3; ++i) {
    const int before = g_handled;
    CHECK_EQ(pthread_kill(attempt.thread, signal), 0);
    while (handled && g_handled == before && !attempt.returned) nap(kMs / 4);
    nap(kMs / 4);
    if (attempt.returned)
      FAIL("%s returned %ld after signal %d instead of going on", blocking.name, attempt.result, signal);
  }
  blocking.release();
  join(attempt.thread);
  if (attempt.result != blocking.result)
    FAIL("%s returned %ld in the end, not %ld", blocking.name, attempt.result, blocking.result);
}

// The signal comes again until the call has returned: it may have been too early.
inline void ends(const BlockingCall& blocking, int signal) {
  Attempt attempt;
  const int before = g_handled;
  begin(attempt, blocking);
  for (int i = 0; !attempt.returned && i < 8000; ++i) {
    pthread_kill(attempt.thread, signal);
    nap(kMs / 2);
  }
  if (!attempt.returned) FAIL("%s goes on for ever", blocking.name);
  join(attempt.thread);
  if (attempt.result != -EINTR) FAIL("%s returned %ld, not -EINTR", blocking.name, attempt.result);
  CHECK(g_handled > before);
}

}  // namespace interrupt

inline void try_signals(const std::vector<BlockingCall>& calls) {
  install(
      SIGUSR1, [](int) { ++g_handled; }, SA_RESTART);
  install(SIGUSR2, [](int) { ++g_handled; });
  for (const BlockingCall& blocking : calls) {
    interrupt::goes_on(blocking, SIGURG, false);
    if (blocking.restart == Restart::never)
      interrupt::ends(blocking, SIGUSR1);
    else
      interrupt::goes_on(blocking, SIGUSR1, true);
    if (blocking.restart == Restart::hidden)
      interrupt::goes_on(blocking, SIGUSR2, true);
    else
      interrupt::ends(blocking, SIGUSR2);
  }
}

}  // namespace upcall::test
