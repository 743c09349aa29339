// Benchmarks of threads that block in the kernel while others on the same processor could go on.
#include <errno.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stall.h"
#include "worker.h"

enum { CLOCK_EVERY = 64 };

// --- stall: the longest time for which a computing thread does not run while another is blocked

static struct {
  atomic_bool blocked, over;
  _Atomic uint64_t longest;  // gap between two looks at the clock in the current stall
  _Atomic uint64_t last;     // look at the clock
} stall;

static void* compute_and_watch(void* argument) {
  uint64_t last = now();
  while (!atomic_load_explicit(&stall.over, memory_order_relaxed)) {
    uint64_t t = now();
    if (!atomic_load_explicit(&stall.blocked, memory_order_relaxed)) {
      atomic_store_explicit(&stall.longest, 0, memory_order_relaxed);
    } else if (t - last > atomic_load_explicit(&stall.longest, memory_order_relaxed)) {
      atomic_store_explicit(&stall.longest, t - last, memory_order_relaxed);
    }
    last = t;
    atomic_store_explicit(&stall.last, t, memory_order_relaxed);
  }
  return argument;
}

// Of the stall that has ended at `end`: the gap that lasts until then counts, too, or a computing thread that never ran would
// seem to have had none.
static uint64_t longest_gap(uint64_t end) {
  uint64_t longest = atomic_load(&stall.longest), last = atomic_load(&stall.last);
  return end > last && end - last > longest ? end - last : longest;
}

static int by_value(const void* a, const void* b) {
  uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  return x < y ? -1 : x > y;
}

// Each call of `block` must take about STALL_NS; what ends it is another process.
static struct result measure_stalls(void (*block)(int), const struct options* options) {
  int count = (int)(12 * options->scale);
  if (count < 3) count = 3;
  if (count > MOST_STALLS) count = MOST_STALLS;
  uint64_t gaps[MOST_STALLS], longest = 0;
  pthread_t computing = start_thread(compute_and_watch, &stall);
  while (atomic_load(&stall.last) == 0) nap(1000000);  // until it runs
  for (int i = 0; i < count; ++i) {
    nap(3000000);  // the other one runs
    atomic_store(&stall.blocked, true);
    uint64_t begin = now();
    block(i);
    uint64_t end = now(), took = end - begin;
    gaps[i] = longest_gap(end);
    atomic_store(&stall.blocked, false);
    EXPECT(took > STALL_NS / 2, "stall: blocked for %ld us only", (long)(took / 1000));
    if (gaps[i] > longest) longest = gaps[i];
  }
  atomic_store(&stall.over, true);
  EXPECT(join_thread(computing) == &stall, "stall: wrong thread joined");
  qsort(gaps, (size_t)count, sizeof *gaps, by_value);
  return (struct result){.value = (double)gaps[count / 2] / 1000,
                         .count = count,
                         .details = {{"longest_us", (double)longest / 1000}}};
}

struct result stall_read(const struct options* options) {
  start_answers();
  struct result r = measure_stalls(block_in_read, options);
  end_helper();
  return r;
}

struct result stall_fault(const struct options* options) {
  open_fault_area(MOST_STALLS);
  start_answers();
  struct result r = measure_stalls(block_in_fault, options);
  end_helper();
  return r;
}

// --- fault_storm: many threads fault, two compute

enum { FAULTING = 64, FAULTS_EACH = 24, SERVICE_NS = 50000 };

static atomic_long next_page;

static void* fault_pages(void* argument) {
  for (int i = 0; i < FAULTS_EACH; ++i) {
    long page = atomic_fetch_add(&next_page, 1);
    EXPECT(*(volatile char*)(fault_area + page * PAGE) == 'u', "fault_storm: wrong page");
  }
  return argument;
}

static _Atomic long computed[2][16];  // a cache line each

static void* compute_until_over(void* argument) {
  _Atomic long* rounds = (_Atomic long*)argument;
  while (!atomic_load_explicit(&stall.over, memory_order_relaxed)) {
    for (volatile int i = 0; i < 1000; ++i) {
    }
    atomic_store_explicit(rounds, atomic_load_explicit(rounds, memory_order_relaxed) + 1,
                          memory_order_relaxed);
  }
  return argument;
}

static long rounds_computed(void) { return atomic_load(&computed[0][0]) + atomic_load(&computed[1][0]); }

// The computing threads are counted over a window of fixed length, in which the faults come to an end: counted while they
// last only, computing would seem to lose by faults being served sooner.
enum { ALONE_NS = 50000000, WINDOW_NS = 200000000 };

// Time per fault. Details: rounds of computing in a millisecond of the window, and before it, with nothing beside.
struct result fault_storm(const struct options* options) {
  (void)options;
  open_fault_area(FAULTING * FAULTS_EACH);
  helper = fork();
  EXPECT(helper >= 0, "fault_storm: fork: %s", strerror(errno));
  if (helper == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1000);
    for (;;) {
      struct uffd_msg m[FAULTING];
      ssize_t n = read(fault_fd, m, sizeof m);
      if (n <= 0) _exit(1);
      nap(SERVICE_NS);
      for (ssize_t i = 0; i < n / (ssize_t)sizeof *m; ++i)
        bring_page((char*)(uintptr_t)(m[i].arg.pagefault.address & ~(uint64_t)(PAGE - 1)));
    }
  }
  pthread_t faulting[FAULTING], computing[2];
  for (int i = 0; i < 2; ++i) computing[i] = start_thread(compute_until_over, (void*)&computed[i][0]);
  nap(ALONE_NS / 5);  // until both run
  long first = rounds_computed();
  uint64_t begin = now();
  nap(ALONE_NS);
  double alone = (double)(rounds_computed() - first) / (double)(now() - begin);
  first = rounds_computed();
  begin = now();
  for (int i = 0; i < FAULTING; ++i) faulting[i] = start_thread(fault_pages, NULL);
  for (int i = 0; i < FAULTING; ++i) join_thread(faulting[i]);
  uint64_t took = now() - begin;
  while (now() - begin < WINDOW_NS) nap(1000000);
  double beside = (double)(rounds_computed() - first) / (double)(now() - begin);
  atomic_store(&stall.over, true);
  for (int i = 0; i < 2; ++i) join_thread(computing[i]);
  end_helper();
  long faults = FAULTING * FAULTS_EACH;
  return (struct result){
      .value = (double)took / 1000 / (double)faults,
      .count = faults,
      .details = {{"computed_per_ms", beside * 1e6}, {"computed_alone_per_ms", alone * 1e6}}};
}

// --- kernel_signal_wait: two threads that wake each other through the kernel

struct pair {
  pthread_barrier_t start;
  int fds[2];
  _Atomic uint32_t turn;
  uint64_t begin, end;
  long rounds;
};

static struct pair pair;

static void* futex_side(void* argument) {
  uint32_t me = (uint32_t)(uintptr_t)argument;
  pthread_barrier_wait(&pair.start);
  for (;;) {
    uint32_t turn;
    while (((turn = atomic_load(&pair.turn)) & 1) != me && !(turn & 0x80000000u))
      syscall(SYS_futex, &pair.turn, FUTEX_WAIT, turn, NULL, NULL, 0);  // shared: through the kernel
    if (turn & 0x80000000u) return argument;
    ++pair.rounds;
    uint32_t next = turn + 1;
    if (me == 0 && pair.rounds % CLOCK_EVERY < 2 && now() > pair.end) next |= 0x80000000u;
    atomic_store(&pair.turn, next);
    syscall(SYS_futex, &pair.turn, FUTEX_WAKE, 1, NULL, NULL, 0);
    if (next & 0x80000000u) return argument;
  }
}

// Anderson et al. 1992, 5.2: Signal-Wait forced through the kernel; per hand-over.
struct result kernel_signal_wait(const struct options* options) {
  pthread_barrier_init(&pair.start, NULL, 2);
  uint64_t begin = now();
  pair.end = begin + duration(options);
  pthread_t threads[2];
  for (intptr_t i = 0; i < 2; ++i) threads[i] = start_thread(futex_side, (void*)i);
  for (intptr_t i = 0; i < 2; ++i)
    EXPECT(join_thread(threads[i]) == (void*)i, "kernel_signal_wait: wrong thread joined");
  EXPECT((pair.turn & 0x7fffffffu) == (uint32_t)pair.rounds, "kernel_signal_wait: %u turns, %ld rounds",
         pair.turn, pair.rounds);
  return (struct result){.value = (double)(now() - begin) / (double)pair.rounds, .count = pair.rounds};
}

// --- blocked_many: a fixed piece of work beside many threads that are blocked in the kernel

static void* wait_for_byte(void* argument) {
  char c;
  EXPECT(read(pair.fds[0], &c, 1) == 1, "blocked_many: read: %s", strerror(errno));
  return argument;
}

struct result blocked_many(const struct options* options) {
  long count = thread_count(options, 1000);
  pthread_t* threads = calloc((size_t)count, sizeof *threads);
  EXPECT(threads != NULL && pipe(pair.fds) == 0, "blocked_many: no memory or descriptors");
  for (long i = 0; i < count; ++i) threads[i] = start_thread(wait_for_byte, &pair);
  nap(100000000);  // all are in read
  uint64_t begin = now();
  for (volatile long i = 0; i < 200000000; ++i) {
  }
  uint64_t took = now() - begin;
  for (long i = 0; i < count; ++i)
    EXPECT(write(pair.fds[1], "x", 1) == 1, "blocked_many: write: %s", strerror(errno));
  for (long i = 0; i < count; ++i)
    EXPECT(join_thread(threads[i]) == &pair, "blocked_many: wrong thread joined");
  free(threads);
  return (struct result){.value = (double)took / 1e6, .count = count};
}

// --- idle_cost: CPU time of a process whose threads all sleep

static void* sleep_long(void* argument) {
  nap((uint64_t)(uintptr_t)argument);
  return NULL;
}

struct result idle_cost(const struct options* options) {
  uint64_t ns = (uint64_t)(3e9 * options->scale);
  pthread_t threads[100];
  for (int i = 0; i < 100; ++i) threads[i] = start_thread(sleep_long, (void*)(uintptr_t)ns);
  nap(50000000);
  struct rusage before;
  struct rusage after;
  getrusage(RUSAGE_SELF, &before);
  uint64_t begin = now();
  nap(ns - ns / 10 - 50000000);
  getrusage(RUSAGE_SELF, &after);
  double wall = (double)(now() - begin);
  double used = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
                         before.ru_stime.tv_sec) *
                    1e9 +
                (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
                         before.ru_stime.tv_usec) *
                    1e3;
  for (int i = 0; i < 100; ++i) join_thread(threads[i]);
  return (struct result){.value = 100 * used / wall, .count = 100};
}
