// abi: threads=20
// Asynchronous cancellation stops compute loops, and runs the destructors of the thread's keys. (Clean-up handlers
// of C++ need a call site to unwind from, which such a loop does not have.)
#include "abi.h"

static std::atomic<int> entered{0}, cleaned{0};
static pthread_key_t key;

int main() {
  CHECK_EQ(pthread_key_create(&key, [](void*) { ++cleaned; }), 0);
  for (int round = 0; round < 5; ++round) {
    std::vector<pthread_t> threads;
    entered = 0;
    for (int i = 0; i < 4; ++i)
      threads.push_back(start([] {
        CHECK_EQ(pthread_setspecific(key, &key), 0);
        CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr), 0);
        ++entered;
        for (;;) asm volatile("");
      }));
    while (entered < 4) nap(kMs / 2);
    for (pthread_t thread : threads) CHECK_EQ(pthread_cancel(thread), 0);
    for (pthread_t thread : threads) CHECK(join(thread) == PTHREAD_CANCELED);
  }
  CHECK_EQ(cleaned, 20);
}
