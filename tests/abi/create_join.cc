// abi: threads=2000
// Return values, arguments and identities come through create and join; joining oneself or twice is refused.
#include "abi.h"

static void* doubled(void* argument) {
  const auto value = reinterpret_cast<uintptr_t>(argument);
  if (value % 2 != 0) pthread_exit(reinterpret_cast<void*>(value * 2));
  return reinterpret_cast<void*>(value * 2);
}

int main() {
  for (uintptr_t i = 0; i < 1000; ++i) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, nullptr, doubled, reinterpret_cast<void*>(i)), 0);
    CHECK_EQ(reinterpret_cast<uintptr_t>(join(thread)), i * 2);
  }
  std::vector<pthread_t> threads(1000);
  for (uintptr_t i = 0; i < threads.size(); ++i)
    CHECK_EQ(pthread_create(&threads[i], nullptr, doubled, reinterpret_cast<void*>(i)), 0);
  for (uintptr_t i = threads.size(); i-- > 0;) CHECK_EQ(reinterpret_cast<uintptr_t>(join(threads[i])), i * 2);

  pthread_t seen{};
  const pthread_t made = start([&seen] {
    seen = pthread_self();
    CHECK_EQ(pthread_join(pthread_self(), nullptr), EDEADLK);
  });
  join(made);
  CHECK(pthread_equal(made, seen) != 0);
}
