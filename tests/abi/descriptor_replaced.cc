// abi: threads=2 descriptors=events timeout=60
// One thread reads a number all the time while another one puts new files there, by dup2 and by close: what comes for the file
// that the number stands for is read, however close the change was.
#include "descriptor.h"

namespace {

void replaced(int rounds, bool by_close, Pair (*make)()) {
  Pair now = make();
  const int number = now.a;
  std::atomic<int> got{0};
  std::atomic<bool> over{false};
  const pthread_t reader = start([&] {
    while (!over) {
      char byte;
      const ssize_t n = read(number, &byte, 1);
      if (n == 1)
        ++got;
      else
        CHECK(n == 0 || errno == EBADF || errno == ECONNRESET);
      if (n < 0) sched_yield();
    }
  });
  for (int i = 1; i <= rounds; ++i) {
    put(now.b, 'x');
    const int64_t limit = now_ns() + 5 * kSecond * time_factor();
    while (got < i) {
      if (now_ns() > limit) FAIL("round %d (%d): what was written is not read", i, by_close);
      sched_yield();
    }
    // The reader is about to wait, or waits, for the old file.
    for (volatile int spin = 0; spin < i * 13 % 4000;) spin = spin + 1;
    if (by_close) {
      CHECK_EQ(close(number), 0);
      close(now.b);
      now = make();
      if (now.a != number) {
        CHECK_EQ(dup2(now.a, number), number);
        close(now.a);
      }
    } else {
      const Pair next = make();
      CHECK_EQ(dup2(next.a, number), number);
      close(next.a), close(now.b);
      now.b = next.b;
    }
  }
  over = true;
  close(now.b);
  join(reader);
  close(number);
}

}  // namespace

int main() {
  const auto sockets = [] { return unix_pair(); };
  for (const bool by_close : {false, true}) {
    replaced(600, by_close, sockets);
    replaced(600, by_close, pipe_pair);
  }
}
