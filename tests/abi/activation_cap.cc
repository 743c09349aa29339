// abi: threads=13 counters=beyond_cap:5 upcall_stderr=activations descriptors=calls
// More threads blocked in the kernel than the soft cap of activations: threads go on, and one line says so.
#include "mixed.h"

int main() {
  // The cap is read when the runtime is loaded. An exec, not a fork: the statistics are this process's.
  if (on_upcall() && !getenv("UPCALL_ACTIVATIONS")) {
    CHECK_EQ(setenv("UPCALL_ACTIVATIONS", "4", 1), 0);
    execl("/proc/self/exe", "activation_cap", nullptr);
    FAIL("exec: errno %d", errno);
  }
  const int warnings = lines_with("kernel threads are blocked", [] {
    constexpr int kBlocked = 12;
    int pipes[2];
    CHECK_EQ(pipe(pipes), 0);
    std::atomic<int> at_read{0};
    std::vector<pthread_t> threads;
    for (int i = 0; i < kBlocked; ++i)
      threads.push_back(start([&] {
        char c;
        ++at_read;
        CHECK_EQ(read(pipes[0], &c, 1), 1);
      }));
    while (at_read < kBlocked) nap(kMs);
    settle();
    // What they wait for comes from a thread like them.
    threads.push_back(start([&] {
      burn(5 * kMs);
      CHECK_EQ(write(pipes[1], "123456789012", kBlocked), kBlocked);
    }));
    join_all(threads);
  });
  CHECK_EQ(warnings, on_upcall() ? 1 : 0);
}
