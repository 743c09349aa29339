// abi: threads=600 descriptors=events counters=event_waits:1000,kernel_threads_peak:1-40
// Hundreds of threads wait for descriptors of every kind, several times each; no kernel thread is blocked for them.
#include "descriptor.h"

int main() {
  constexpr int kEach = 200, kRounds = 5;
  std::vector<Pair> pairs;
  for (int i = 0; i < kEach; ++i) {
    pairs.push_back(pipe_pair());
    pairs.push_back(unix_pair());
    pairs.push_back(tcp_pair());
  }
  std::atomic<int> sum{0}, waiting{0};
  std::vector<pthread_t> threads;
  for (const Pair& p : pairs)
    threads.push_back(start([&, p] {
      for (int i = 0; i < kRounds; ++i) {
        ++waiting;
        sum += get(p.a);
      }
    }));
  for (int i = 0; i < kRounds; ++i) {
    while (waiting < (i + 1) * static_cast<int>(pairs.size())) sched_yield();
    settle();
    for (const Pair& p : pairs) put(p.b, static_cast<char>(i + 1));
  }
  join_all(threads);
  CHECK_EQ(sum.load(), static_cast<int>(pairs.size()) * kRounds * (kRounds + 1) / 2);
}
