// abi: threads=3
// alarm() and setitimer() interrupt a program all of whose threads compute.
#include <sys/time.h>

#include "abi.h"

static std::atomic<int> alarms{0};

int main() {
  install(SIGALRM, [](int) { ++alarms; });
  std::vector<pthread_t> threads;
  const auto computing = [] {
    while (alarms < 4) burn(kMs);
  };
  const int64_t begin = now_ns();
  alarm(1);
  for (int i = 0; i < 3; ++i) threads.push_back(start(computing));
  while (alarms < 1) burn(kMs);
  const int64_t took = now_ns() - begin;
  CHECK(took >= 990 * kMs && took < 8 * kSecond);
  const itimerval every = {{0, 20000}, {0, 20000}};
  CHECK_EQ(setitimer(ITIMER_REAL, &every, nullptr), 0);
  computing();
  const itimerval never = {};
  CHECK_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
  join_all(threads);
}
