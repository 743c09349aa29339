// abi: threads=6 descriptors=events timeout=20
// fork while threads wait: the child closes all it has inherited, or waits for the same files with threads of its own, and the
// parent's threads go on; what the parent closes meanwhile the child still has.
#include "descriptor.h"

int main() {
  for (int round = 0; round < 4; ++round) {
    const Pair p = round % 2 ? pipe_pair() : unix_pair(), q = tcp_pair(), closed = unix_pair();
    const pthread_t first = start([&] { CHECK_EQ(get(p.a), 'p'); });
    const pthread_t second = start([&] { CHECK_EQ(get(q.a), 'q'); });
    const pthread_t third = start([&] {
      const char byte = get(closed.a);
      CHECK(byte == 'c' || byte == 'h');
    });
    settle();
    const Pair go = unix_pair();
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      if (round < 2) {
        CHECK_EQ(syscall(436, 3, go.a - 1, 0), 0);
        const Pair own = unix_pair();
        CHECK_EQ(own.a, 3);
        const pthread_t t = start([&] { CHECK_EQ(get(own.a), 'o'); });
        settle();
        put(own.b, 'o');
        join(t);
        put(go.a, 'd');
      } else {
        close(closed.b);
        const pthread_t t = start([&] {
          const char byte = get(closed.a);
          CHECK(byte == 'c' || byte == 'h');
        });
        put(go.a, 'r');
        CHECK_EQ(get(go.a), 'g');
        join(t);
      }
      _exit(0);
    }
    if (round < 2) {
      CHECK_EQ(get(go.b), 'd');
      put(closed.b, 'c');
      join(third);
    } else {
      CHECK_EQ(get(go.b), 'r');
      settle();
      put(closed.b, 'c');  // for this process's thread or the child's
      nap(kMs);
      put(closed.b, 'h');  // for the other one
      put(go.b, 'g');
    }
    put(p.b, 'p');
    put(q.b, 'q');
    join(first);
    join(second);
    if (round >= 2) join(third);
    wait_exit(child, 0);
    close_both(q), close_both(go);
    close_both(p), close_both(closed);
  }
}
