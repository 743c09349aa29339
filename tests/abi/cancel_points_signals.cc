// abi: threads=13
// Waiting for signals is a cancellation point (pthreads(7)). A pending signal is not taken by a thread that is
// cancelled instead; sigsuspend's mask goes with the thread.
#include <aio.h>

#include "cancel.h"

static sigset_t waited, nothing;
static aiocb never;

static std::vector<Point> points() {
  return {
      {"sigwait",
       [] {
         int signal;
         sigwait(&waited, &signal);
       }},
      {"sigwaitinfo", [] { sigwaitinfo(&waited, nullptr); }},
      {"sigtimedwait",
       [] {
         const timespec t = {1000, 0};
         sigtimedwait(&waited, nullptr, &t);
       }},
      {"sigsuspend", [] { sigsuspend(&waited); }},
      {"pause", [] { pause(); }},
      {"aio_suspend",
       [] {
         const aiocb* list[] = {&never};
         aio_suspend(list, 1, nullptr);
       }},
  };
}

int main() {
  waited = signal_set({SIGUSR1, SIGRTMIN + 3});
  sigemptyset(&nothing);
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &waited, nullptr), 0);
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  static char byte;
  never.aio_fildes = ends[0];
  never.aio_buf = &byte;
  never.aio_nbytes = 1;
  never.aio_sigevent.sigev_notify = SIGEV_NONE;
  CHECK_EQ(aio_read(&never), 0);

  cancel_blocked(points());
  CHECK_EQ(kill(getpid(), SIGUSR1), 0);
  cancel_pending(points());
  // Neither the request nor the wait has taken the signal.
  const timespec soon = {10, 0};
  CHECK_EQ(sigtimedwait(&waited, nullptr, &soon), SIGUSR1);

  // The thread's own mask, as it was before sigsuspend, is not its children's affair: others have theirs.
  sigset_t now;
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &now), 0);
  CHECK(sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2));
  CHECK_EQ(write(ends[1], "x", 1), 1);
  while (aio_error(&never) == EINPROGRESS) nap(kMs);
  CHECK_EQ(aio_return(&never), 1);
}
