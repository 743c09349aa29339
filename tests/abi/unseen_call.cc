// abi: threads=2 unseen=1
// A thread blocks in a system call in code made at run time, where no wrapper sees it: the others go on, the one that
// wakes it among them. Many rounds: on one processor every round would hang without that.
#include "unseen.h"

int main() {
  auto call = made_syscall();
  int there[2], back[2];
  CHECK_EQ(pipe(there), 0);
  CHECK_EQ(pipe(back), 0);
  constexpr int kRounds = 100;
  pthread_t blocked = start([&] {
    for (int i = 0; i < kRounds; ++i) {
      char c = 0;
      CHECK_EQ(call(SYS_read, there[0], reinterpret_cast<long>(&c), 1), 1);
      CHECK_EQ(c, static_cast<char>(i));
      CHECK_EQ(call(SYS_write, back[1], reinterpret_cast<long>(&c), 1), 1);
    }
  });
  pthread_t other = start([&] {
    for (int i = 0; i < kRounds; ++i) {
      if (i % 4 == 0) burn(kMs);
      char c = static_cast<char>(i);
      CHECK_EQ(write(there[1], &c, 1), 1);
      c = 99;
      CHECK_EQ(call(SYS_read, back[0], reinterpret_cast<long>(&c), 1), 1);
      CHECK_EQ(c, static_cast<char>(i));
    }
  });
  join(blocked);
  join(other);
}
