// abi: threads=10
// A barrier used again at once: nobody is a round ahead, one serial thread a round.
#include "abi.h"

int main() {
  constexpr int kThreads = 10, kRounds = 300;
  static pthread_barrier_t barrier;
  static std::atomic<int> in_round[kRounds];
  static std::atomic<int> serial{0};
  CHECK_EQ(pthread_barrier_init(&barrier, nullptr, kThreads), 0);
  std::vector<pthread_t> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.push_back(start([] {
      for (int round = 0; round < kRounds; ++round) {
        ++in_round[round];
        const int result = pthread_barrier_wait(&barrier);
        CHECK_EQ(in_round[round], kThreads);
        if (result == PTHREAD_BARRIER_SERIAL_THREAD)
          ++serial;
        else
          CHECK_EQ(result, 0);
      }
    }));
  join_all(threads);
  CHECK_EQ(serial, kRounds);
  CHECK_EQ(pthread_barrier_destroy(&barrier), 0);
}
