// abi: threads=8
// Spin locks with more threads than processors: a holder that loses its processor gets it back.
#include "abi.h"

int main() {
  static pthread_spinlock_t lock;
  static int counter = 0;
  CHECK_EQ(pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE), 0);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 8; ++i)
    threads.push_back(start([] {
      for (int round = 0; round < 2000; ++round) {
        CHECK_EQ(pthread_spin_lock(&lock), 0);
        const int old = counter;
        for (int spin = 0; spin < 20; ++spin) asm volatile("");
        counter = old + 1;
        CHECK_EQ(pthread_spin_unlock(&lock), 0);
      }
    }));
  join_all(threads);
  CHECK_EQ(counter, 16000);
  CHECK_EQ(pthread_spin_trylock(&lock), 0);
  join(start([] { CHECK_EQ(pthread_spin_trylock(&lock), EBUSY); }));
}
