// abi: threads=5
// Under a limit of address space (ulimit -v), threads of the default size are made until EAGAIN; those made work
// and can be joined, and then others can be made.
#include <sys/resource.h>

#include "abi.h"

int main(int count, char** arguments) {
  if (count == 1) {
    const rlimit tight = {size_t{700} << 20, RLIM_INFINITY};
    CHECK_EQ(setrlimit(RLIMIT_AS, &tight), 0);
    execl("/proc/self/exe", arguments[0], "limited", nullptr);
    FAIL("exec: errno %d", errno);
  }
  for (int round = 0; round < 2; ++round) {
    static std::atomic<int> ran{0};
    static std::atomic<bool> leave{false};
    ran = 0;
    leave = false;
    std::vector<pthread_t> threads;
    int error = 0;
    while (threads.size() < 5000) {
      pthread_t thread;
      error = pthread_create(
          &thread, nullptr,
          [](void*) -> void* {
            ++ran;
            while (!leave) nap(kMs);
            return nullptr;
          },
          nullptr);
      if (error != 0) break;
      threads.push_back(thread);
    }
    CHECK_EQ(error, EAGAIN);
    CHECK(threads.size() >= 5);
    leave = true;
    join_all(threads);
    CHECK_EQ(ran, threads.size());
  }
}
