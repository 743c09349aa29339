// abi: threads=400 descriptors=events counters=event_waits:150
// The same few numbers over and over, closed by the thread that read or by another one; what came for an earlier file never
// reaches a later one.
#include "descriptor.h"

int main() {
  for (int round = 0; round < 400; ++round) {
    const Pair p = round % 3 == 0 ? pipe_pair() : round % 3 == 1 ? unix_pair() : tcp_pair();
    const char byte = static_cast<char>('a' + round % 26);
    const pthread_t reader = start([&] {
      CHECK_EQ(get(p.a), byte);
      if (round % 2) close(p.a);
    });
    if (round % 4 < 2) sched_yield();
    if (round % 8 == 0) nap(kMs);
    put(p.b, byte);
    join(reader);
    if (round % 2 == 0) close(p.a);
    close(p.b);
  }
}
