// abi: threads=16 descriptors=events timeout=20
// Two threads wait for one descriptor. A byte comes, and at the same time a signal for one of them, whose handler does not say
// SA_RESTART: that one comes back in any case, with the byte or with EINTR.
#include <signal.h>

#include "descriptor.h"

namespace {

void round(const Pair& p, bool first) {
  std::atomic<int> back{0};
  std::atomic<bool> told{false};
  const auto waits = [&](bool signalled) {
    char byte;
    ssize_t n = read(p.a, &byte, 1);
    if (n < 0) {
      CHECK_EQ(errno, EINTR);
      CHECK(signalled);
    }
    if (signalled) told = true;
    ++back;
  };
  const pthread_t a = start([&] { waits(first); });
  settle();
  const pthread_t b = start([&] { waits(!first); });
  settle();
  put(p.b, 'x');
  kill_perhaps_ended(first ? a : b, SIGUSR1);
  const int64_t limit = now_ns() + 3 * kSecond * time_factor();
  while (!told) {
    if (now_ns() > limit) FAIL("the signalled thread waits on");
    nap(kMs);
  }
  CHECK_EQ(write(p.b, "yy", 2), 2);
  join(a);
  join(b);
  close_both(p);
}

}  // namespace

int main() {
  install(SIGUSR1, [](int) {});
  for (int i = 0; i < 3; ++i)
    for (const bool first : {false, true}) {
      round(pipe_pair(), first);
      round(unix_pair(), first);
      round(tcp_pair(), first);
    }
}
