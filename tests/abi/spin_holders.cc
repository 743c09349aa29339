// abi: threads=18
// A holder of a spin lock that is stopped, because its time slice is over or by priority, or that blocks, or is in another
// process, is not kept from its processor by those who spin.
#include <sys/mman.h>

#include "mixed.h"

static pthread_spinlock_t spin;

// CPU time, ns, of `threads` threads that together hold the lock `pairs` times for 100 us of computing.
static int64_t cost(int threads, int pairs) {
  const int64_t begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  int counter = 0;
  std::vector<pthread_t> all;
  for (int i = 0; i < threads; ++i)
    all.push_back(start([&] {
      for (int k = 0; k < pairs / threads; ++k) {
        CHECK_EQ(pthread_spin_lock(&spin), 0);
        const int old = counter;
        volatile uint64_t work = 1;
        for (int n = 0; n < 100'000; ++n) work = work * 3 + 1;
        counter = old + 1;
        CHECK_EQ(pthread_spin_unlock(&spin), 0);
      }
    }));
  join_all(all);
  CHECK_EQ(counter, pairs);
  return now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
}

// Spinners must not burn what the holder needs: eight threads use at most a few times what one does.
static void stopped_by_time_slice() {
  const int64_t alone = cost(1, 3200), together = cost(8, 3200);
  dprintf(2, "CPU time of eight threads: %.2f times that of one\n",
          static_cast<double>(together) / static_cast<double>(alone));
  const char* processors = getenv("UPCALL_PROCESSORS");
  // On several processors the others may burn theirs.
  if (processors && strcmp(processors, "1") == 0) CHECK(together < 3 * alone);
}

static void stopped_by_priority() {
  std::atomic<bool> held{false};
  const pthread_t holder = start([&] {
    CHECK_EQ(pthread_spin_lock(&spin), 0);
    held = true;
    burn(30 * kMs);
    CHECK_EQ(pthread_spin_unlock(&spin), 0);
  });
  while (!held) sched_yield();
  const pthread_t urgent = start([&] {
    sched_param param = {};
    param.sched_priority = 10;
    CHECK_EQ(pthread_setschedparam(pthread_self(), SCHED_FIFO, &param), 0);
    CHECK_EQ(pthread_spin_trylock(&spin), EBUSY);
    CHECK_EQ(pthread_spin_lock(&spin), 0);
    CHECK_EQ(pthread_spin_unlock(&spin), 0);
  });
  join(urgent);
  join(holder);
}

static void holder_blocks() {
  std::atomic<bool> held{false};
  const pthread_t holder = start([&] {
    CHECK_EQ(pthread_spin_lock(&spin), 0);
    held = true;
    nap(20 * kMs);
    CHECK_EQ(pthread_spin_unlock(&spin), 0);
  });
  while (!held) sched_yield();
  CHECK_EQ(pthread_spin_trylock(&spin), EBUSY);
  std::vector<pthread_t> spinners;
  for (int i = 0; i < 4; ++i)
    spinners.push_back(start([&] {
      CHECK_EQ(pthread_spin_lock(&spin), 0);
      CHECK_EQ(pthread_spin_unlock(&spin), 0);
    }));
  join_all(spinners);
  join(holder);
}

struct Shared {
  pthread_spinlock_t lock;
  std::atomic<int> ready;
  int counter;
};

static void other_process() {
  auto* shared =
      static_cast<Shared*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(shared != MAP_FAILED);
  CHECK_EQ(pthread_spin_init(&shared->lock, PTHREAD_PROCESS_SHARED), 0);
  const auto work = [shared] {
    for (int i = 0; i < 300; ++i) {
      CHECK_EQ(pthread_spin_lock(&shared->lock), 0);
      const int old = shared->counter;
      burn(i % 100 == 0 ? 12 * kMs : 1000);
      shared->counter = old + 1;
      CHECK_EQ(pthread_spin_unlock(&shared->lock), 0);
    }
  };
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    work();
    _exit(5);
  }
  const pthread_t a = start(work), b = start(work);
  join(a);
  join(b);
  wait_exit(child, 5);
  CHECK_EQ(shared->counter, 900);
}

int main() {
  CHECK_EQ(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
  stopped_by_time_slice();
  if (on_upcall()) stopped_by_priority();  // kernel threads need privilege for it, and hang on one CPU
  holder_blocks();
  other_process();
  CHECK_EQ(pthread_spin_destroy(&spin), 0);
}
