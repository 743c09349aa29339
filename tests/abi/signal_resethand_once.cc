// abi: threads=5
// sigaction(2): SA_RESETHAND restores the default action on entry to the handler: of several threads that are signalled at the
// same time one runs it.
#include "abi.h"

static std::atomic<int> handled{0};

int main() {
  constexpr int kThreads = 5;
  std::atomic<int> round{0}, done{0};
  std::vector<pthread_t> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.push_back(start([&] {
      for (int r = 1; r <= 12; ++r) {
        while (round < r) nap(kMs / 4);
        CHECK_EQ(raise(SIGURG), 0);  // ignored by default
        ++done;
      }
    }));
  for (int r = 1; r <= 12; ++r) {
    handled = 0;
    install(
        SIGURG, [](int) { ++handled; }, static_cast<int>(SA_RESETHAND));
    done = 0;
    round = r;
    while (done < kThreads) nap(kMs / 4);
    CHECK_EQ(handled, 1);
  }
  join_all(threads);
}
