// abi: threads=11
// Threads that sleep for different times wake in that order, and soon, while another computes without a pause.
#include "abi.h"

int main() {
  static std::atomic<int> order{0};
  static std::atomic<bool> stop{false};
  static int position[10];
  static int64_t late[10];
  const pthread_t computing = start([] {
    while (!stop) asm volatile("");
  });
  const int64_t begin = now_ns() + 30 * kMs;
  std::vector<pthread_t> threads;
  for (int i = 9; i >= 0; --i)
    threads.push_back(start([i, begin] {
      const int64_t due = begin + i * 30 * kMs;
      const timespec deadline = to_timespec(due);
      CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr), 0);
      position[i] = order++;
      late[i] = now_ns() - due;
    }));
  join_all(threads);
  stop = true;
  join(computing);
  for (int i = 0; i < 10; ++i) {
    CHECK_EQ(position[i], i);
    CHECK(late[i] >= 0 && late[i] < kSecond);
  }
}
