// Benchmarks of handing the processor over between threads.
#include <sched.h>
#include <unistd.h>

#include "worker.h"

enum { CLOCK_EVERY = 512 };  // turns between two looks at the clock

static uint64_t deadline_after_start;

struct turns {
  pthread_barrier_t start;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  atomic_bool stop;
  _Atomic long sequence;    // signal_wait: whose turn, by parity
  _Atomic int last;         // yield: who ran last
  _Atomic long alternated;  // yield: how often that was the other one
  _Atomic long total;
};

static struct turns turns = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .last = -1};

struct span {
  uint64_t begin;
  uint64_t end;
};

static struct span spans[4];

// Starts `count` threads together, joins them; returns first start to last end, ns.
static double run_together(void* (*body)(void*), int count, const struct options* options) {
  pthread_t threads[4];
  deadline_after_start = duration(options);
  pthread_barrier_init(&turns.start, NULL, (unsigned)count);
  for (int i = 0; i < count; ++i) threads[i] = start_thread(body, (void*)(intptr_t)i);
  for (int i = 0; i < count; ++i) {
    void* back = join_thread(threads[i]);
    EXPECT(back == &spans[i], "thread %d returned %p, not %p", i, back, (void*)&spans[i]);
  }
  struct span all = spans[0];
  for (int i = 1; i < count; ++i) {
    if (spans[i].begin < all.begin) all.begin = spans[i].begin;
    if (spans[i].end > all.end) all.end = spans[i].end;
  }
  return (double)(all.end - all.begin);
}

static void* yield_body(void* argument) {
  int me = (int)(intptr_t)argument;
  long yields = 0;
  long alternated = 0;
  pthread_barrier_wait(&turns.start);
  spans[me].begin = now();
  while (!atomic_load_explicit(&turns.stop, memory_order_relaxed)) {
    // Plain load and store, no exchange: a locked instruction would be a good part of what is measured.
    alternated += atomic_load_explicit(&turns.last, memory_order_relaxed) != me;
    atomic_store_explicit(&turns.last, me, memory_order_relaxed);
    sched_yield();
    if (++yields % CLOCK_EVERY == 0 && now() - spans[me].begin > deadline_after_start) {
      atomic_store(&turns.stop, true);
    }
  }
  spans[me].end = now();
  atomic_fetch_add(&turns.total, yields);
  atomic_fetch_add(&turns.alternated, alternated);
  return &spans[me];
}

static bool one_processor(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1;
}

// Two threads that yield to each other. On one processor nearly every turn must follow one of the other
// thread; a time slice that ends between two yields may take a few away.
struct result yield_turns(const struct options* options) {
  double elapsed = run_together(yield_body, 2, options);
  double share = (double)turns.alternated / (double)turns.total;
  EXPECT(!one_processor() || share > 0.95, "yield: only %.1f %% of %ld turns alternate", 100 * share,
         turns.total);
  return (struct result){
      .value = elapsed / (double)turns.total, .count = turns.total, .details = {{"alternation", share}}};
}

static void* signal_wait_body(void* argument) {
  int me = (int)(intptr_t)argument;
  long own = 0;
  bool stop = false;
  pthread_barrier_wait(&turns.start);
  spans[me].begin = now();
  pthread_mutex_lock(&turns.lock);
  while (!stop) {
    while ((turns.sequence & 1) != me) pthread_cond_wait(&turns.changed, &turns.lock);
    // Thread 1 has the last turn, so that both leave with none owed.
    stop = turns.stop;
    if (me == 0 && ++own % CLOCK_EVERY == 0 && now() - spans[me].begin > deadline_after_start) {
      stop = true;
      turns.stop = true;
    } else if (me == 1) {
      ++own;
    }
    ++turns.sequence;
    pthread_cond_signal(&turns.changed);
  }
  pthread_mutex_unlock(&turns.lock);
  spans[me].end = now();
  turns.total += own;
  return &spans[me];
}

// Mutex and condition variable, one way (Anderson et al. 1992: Signal-Wait).
struct result signal_wait(const struct options* options) {
  double elapsed = run_together(signal_wait_body, 2, options);
  EXPECT(turns.sequence == turns.total, "signal_wait: %ld turns taken, %ld given", turns.total,
         turns.sequence);
  EXPECT(turns.sequence % 2 == 0, "signal_wait: odd number of turns, %ld", turns.sequence);
  return (struct result){.value = elapsed / (double)turns.total, .count = turns.total};
}

static long shared_sum;

static void* contend_body(void* argument) {
  int me = (int)(intptr_t)argument;
  long own = 0;
  pthread_barrier_wait(&turns.start);
  spans[me].begin = now();
  while (!atomic_load_explicit(&turns.stop, memory_order_relaxed)) {
    pthread_mutex_lock(&turns.lock);
    ++shared_sum;
    pthread_mutex_unlock(&turns.lock);
    if (++own % CLOCK_EVERY == 0 && now() - spans[me].begin > deadline_after_start)
      atomic_store(&turns.stop, true);
  }
  spans[me].end = now();
  atomic_fetch_add(&turns.total, own);
  return &spans[me];
}

// Four threads, a mutex, a critical section of one addition.
struct result mutex_contended(const struct options* options) {
  double elapsed = run_together(contend_body, 4, options);
  EXPECT(shared_sum == turns.total, "mutex_contended: sum %ld, not %ld", shared_sum, turns.total);
  return (struct result){.value = elapsed / (double)turns.total, .count = turns.total};
}

enum { SPINNERS = 8, HELD_NS = 20000 };

static pthread_spinlock_t spin;
static _Atomic int own_spin;

static void spin_own_lock(void) {
  while (atomic_exchange_explicit(&own_spin, 1, memory_order_acquire) != 0) {
    while (atomic_load_explicit(&own_spin, memory_order_relaxed) != 0) __builtin_ia32_pause();
  }
}

static void* spin_body(void* argument) {
  bool own = *(bool*)argument;
  long pairs = 0;
  pthread_barrier_wait(&turns.start);
  while (!atomic_load_explicit(&turns.stop, memory_order_relaxed)) {
    if (own)
      spin_own_lock();
    else
      pthread_spin_lock(&spin);
    long before = shared_sum;
    uint64_t begin = now();
    while (now() - begin < HELD_NS) {
    }
    shared_sum = before + 1;
    if (begin > deadline_after_start) atomic_store(&turns.stop, true);
    if (own)
      atomic_store_explicit(&own_spin, 0, memory_order_release);
    else
      pthread_spin_unlock(&spin);
    ++pairs;
  }
  atomic_fetch_add(&turns.total, pairs);
  return argument;
}

// Eight threads hold a lock in turn for 20 us: nearly always it is the holder whose time slice ends. Per lock and unlock.
static struct result spin_together(bool own, const struct options* options) {
  pthread_t threads[SPINNERS];
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  pthread_barrier_init(&turns.start, NULL, SPINNERS);
  uint64_t begin = now();
  deadline_after_start = begin + duration(options);
  for (int i = 0; i < SPINNERS; ++i) threads[i] = start_thread(spin_body, &own);
  for (int i = 0; i < SPINNERS; ++i) join_thread(threads[i]);
  uint64_t elapsed = now() - begin;
  EXPECT(shared_sum == turns.total, "spin: sum %ld, not %ld", shared_sum, turns.total);
  return (struct result){.value = (double)elapsed / (double)turns.total, .count = turns.total};
}

struct result spin_lock(const struct options* options) {
  return spin_together(false, options);
}
// The same with a lock of the program's own, that no library knows of.
struct result spin_own(const struct options* options) {
  return spin_together(true, options);
}
