// abi: threads=4 descriptors=events bound=1 timeout=10
// A thread that has a kernel thread of its own closes descriptors that others wait for, and numbers that others use next.
#include <linux/prctl.h>
#include <sys/prctl.h>

#include "descriptor.h"

int main() {
  const Pair p = unix_pair();
  std::atomic<int> step{0};
  const auto wait_for = [&](int s) {
    while (step < s) nap(kMs);
  };
  Pair next;
  const pthread_t bound = start([&] {
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    wait_for(1);
    // The number has been waited for once; now nobody does.
    CHECK_EQ(close(p.a), 0);
    next = unix_pair();
    step = 2;
    wait_for(3);
    CHECK_EQ(close(next.a), 0);
    step = 4;
  });
  const pthread_t first = start([&] { CHECK_EQ(get(p.a), '1'); });
  settle();
  put(p.b, '1');
  join(first);
  step = 1;
  wait_for(2);
  // The same number, another file.
  const pthread_t second = start([&] { CHECK_EQ(get(next.a), '2'); });
  settle();
  put(next.b, '2');
  join(second);
  // Closed while somebody waits.
  const pthread_t third = start([&] { CHECK_EQ(get(next.a), '3'); });
  settle();
  step = 3;
  wait_for(4);
  put(next.b, '3');
  join(third);
  join(bound);
}
