// abi: threads=9 counters=activations_refused:1 upcall_stderr=no.more.kernel.threads
// The system gives no more kernel threads while threads block in the kernel: those that are ready wait for one of the
// blocked to come back, and go on with it; one line says so; when the limit is gone all is as before.
#include <sys/resource.h>

#include "mixed.h"

static void allow_kernel_threads(rlim_t n) {
  rlimit limit;
  CHECK_EQ(getrlimit(RLIMIT_NPROC, &limit), 0);
  limit.rlim_cur = n;
  CHECK_EQ(setrlimit(RLIMIT_NPROC, &limit), 0);
}

int main() {
  // The limit does not hold for root, who comes back at the end.
  const bool root = geteuid() == 0;
  if (root && setresuid(65534, 65534, 0) != 0) skip("cannot become another user");
  int pipes[2];
  CHECK_EQ(pipe(pipes), 0);
  auto* waiting = static_cast<std::atomic<int>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(waiting != MAP_FAILED);
  constexpr int kReaders = 4;
  // Releases the readers one by one: whom nobody else can, if no processor is left.
  const pid_t child = start_beside([&](pid_t) {
    while (*waiting == 0) nap(kMs);
    for (int i = 0; i < kReaders; ++i) {
      nap(100 * kMs);
      CHECK_EQ(write(pipes[1], "x", 1), 1);
    }
    for (;;) pause();
  });
  // With its monitor, before the limit.
  join(start([] {}));
  rlimit before;
  CHECK_EQ(getrlimit(RLIMIT_NPROC, &before), 0);
  const int warnings = lines_with("no more kernel threads", [&] {
    std::atomic<bool> go{false};
    std::atomic<int> read_done{0};
    std::atomic<long> computed{0};
    std::vector<pthread_t> threads;
    for (int i = 0; i < kReaders; ++i)
      threads.push_back(start([&] {
        while (!go) sched_yield();
        ++*waiting;
        char c;
        CHECK_EQ(read(pipes[0], &c, 1), 1);
        ++read_done;
      }));
    for (int i = 0; i < 4; ++i)
      threads.push_back(start([&] {
        while (!go) sched_yield();
        for (int k = 0; k < 20; ++k) {
          burn(kMs);
          sched_yield();
          ++computed;
        }
      }));
    allow_kernel_threads(1);
    go = true;
    join_all(threads);
    CHECK_EQ(read_done, kReaders);
    CHECK_EQ(computed, 80);
  });
  CHECK_EQ(warnings, on_upcall() ? 1 : 0);
  allow_kernel_threads(before.rlim_cur);
  end_beside(child);
  const int64_t waited = longest_takeover(3, false);
  CHECK(waited < kSecond);
  if (root) CHECK_EQ(seteuid(0), 0);
}
