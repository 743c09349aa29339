// abi: threads=2
// sigsuspend(2), pause(2), ppoll(2), pselect(2), epoll_pwait(2): a signal pending under the old mask and open under the new one is handled at
// once, two of them in one go; the old mask is back afterwards, also in what the handler's context says; ignored signals do not
// end them.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <ucontext.h>

#include "abi.h"

static thread_local int hits = 0;
static thread_local bool kept = true;

static void handler(int, siginfo_t*, void* context) {
  ++hits;
  const auto* told = static_cast<ucontext_t*>(context);
  // The second one has been interrupted by the first before it began: it returns to the mask from before the call.
  if (hits == 2)
    kept = sigismember(&told->uc_sigmask, SIGUSR1) == 1 && sigismember(&told->uc_sigmask, SIGRTMIN + 1) == 1;
}

static void body() {
  const sigset_t set = signal_set({SIGUSR1, SIGRTMIN + 1});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  sigset_t open;
  sigemptyset(&open);
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const int files = epoll_create1(0);
  CHECK(files >= 0);
  const auto back = [](int wanted) {
    CHECK_EQ(hits, wanted);
    CHECK(kept);
    sigset_t now;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
    CHECK(sigismember(&now, SIGUSR1) == 1 && sigismember(&now, SIGRTMIN + 1) == 1);
    CHECK_EQ(sigpending(&now), 0);
    CHECK(sigismember(&now, SIGUSR1) == 0 && sigismember(&now, SIGRTMIN + 1) == 0);
    hits = 0;
  };
  for (int round = 0; round < 5; ++round) {
    CHECK_EQ(pthread_kill(pthread_self(), SIGRTMIN + 1), 0);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    pollfd item = {ends[0], POLLIN, 0};
    fd_set read_set;
    FD_ZERO(&read_set);
    FD_SET(ends[0], &read_set);
    epoll_event event;
    switch (round) {
      case 0:
        CHECK_ERRNO(sigsuspend(&open), EINTR);
        break;
      case 1:
        CHECK_ERRNO(ppoll(&item, 1, nullptr, &open), EINTR);
        break;
      case 2:
        CHECK_ERRNO(pselect(ends[0] + 1, &read_set, nullptr, nullptr, nullptr, &open), EINTR);
        break;
      case 3:
        CHECK_ERRNO(epoll_pwait(files, &event, 1, -1, &open), EINTR);
        break;
      default: {
        // Nothing is pending here: the time is up, and the mask is back.
        const timespec none = {0, 0};
        while (sigtimedwait(&set, nullptr, &none) > 0) {
        }
        const timespec shortly = {0, 2'000'000};
        CHECK_EQ(ppoll(&item, 1, &shortly, &open), 0);
        back(0);
        continue;
      }
    }
    back(2);
  }
  CHECK_ERRNO(syscall(SYS_rt_sigsuspend, &open, 4), EINVAL);
  close(ends[0]), close(ends[1]), close(files);
}

int main() {
  install_info(SIGUSR1, handler);
  install_info(SIGRTMIN + 1, handler);
  join(start([] {}));
  body();
  join(start(body));

  // Only a handler ends pause.
  std::atomic<bool> paused{false}, over{false};
  const pthread_t waiter = start([&] {
    const sigset_t set = signal_set({SIGUSR1, SIGRTMIN + 1});
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
    paused = true;
    CHECK_ERRNO(pause(), EINTR);
    CHECK(hits >= 1);
    over = true;
  });
  while (!paused) nap(kMs);
  settle();
  for (int i = 0; i < 5; ++i) CHECK_EQ(pthread_kill(waiter, SIGWINCH), 0);
  settle();
  CHECK(!over);
  while (!over) {
    CHECK_EQ(pthread_kill(waiter, SIGUSR1), 0);
    nap(2 * kMs);
  }
  join(waiter);
}
