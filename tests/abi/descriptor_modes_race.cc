// abi: threads=1 descriptors=events timeout=20
// A thread that makes a socket blocking, while another one keeps reading it without waiting, can rely on it at once.
#include "descriptor.h"

int main() {
  const Pair p = unix_pair();
  constexpr int kRounds = 1000;
  std::atomic<int> blocking{0}, reading{0};
  CHECK_EQ(fcntl(p.a, F_SETFL, O_NONBLOCK), 0);
  const pthread_t reader = start([&] {
    for (int i = 1; i <= kRounds; ++i) {
      char byte = 0;
      reading = i;
      ssize_t n = -1;
      // The last one that begins before `blocking` is seen may wait already.
      while (blocking < i && (n = read(p.a, &byte, 1)) < 0) CHECK_EQ(errno, EAGAIN);
      if (n < 0) CHECK_EQ(read(p.a, &byte, 1), 1);
      CHECK_EQ(byte, 'x');
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    while (reading < i) sched_yield();
    burn(i * 37 % 20'000);
    CHECK_EQ(fcntl(p.a, F_SETFL, 0), 0);
    blocking = i;
    burn(20'000);
    put(p.b, 'x');
    while (reading == i && i < kRounds) sched_yield();
    CHECK_EQ(fcntl(p.a, F_SETFL, O_NONBLOCK), 0);
  }
  join(reader);
}
