// An OpenMP program (libgomp) that checks its own results: worksharing, reductions, tasks, critical
// sections, barriers, ordered and single regions, locks, nested teams.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 8 };
static int failures;

static void expect(const char* what, long got, long want) {
  if (got == want) {
    printf("%s %ld\n", what, got);
  } else {
    printf("WRONG %s: %ld instead of %ld\n", what, got, want);
    failures++;
  }
}

static long fib(int n) {
  if (n < 2) return n;
  long a, b;
#pragma omp task shared(a) if (n > 8)
  a = fib(n - 1);
#pragma omp task shared(b) if (n > 8)
  b = fib(n - 2);
#pragma omp taskwait
  return a + b;
}

static void reductions(void) {
  long sum = 0, most = 0;
  for (int round = 0; round < 200; round++) {
    sum = 0;
#pragma omp parallel for reduction(+ : sum) reduction(max : most) schedule(dynamic, 64)
    for (long i = 0; i < 20000; i++) {
      sum += i * (i & 7);
      if (i > most) most = i;
    }
  }
  long want = 0;
  for (long i = 0; i < 20000; i++) want += i * (i & 7);
  expect("reduction", sum, want);
  expect("maximum", most, 19999);
}

static void barriers(void) {
  enum { kRounds = 2000 };
  static long cell[2][kThreads];
  long wrong = 0;
#pragma omp parallel num_threads(kThreads) reduction(+ : wrong)
  {
    int me = omp_get_thread_num(), team = omp_get_num_threads();
    for (long round = 0; round < kRounds; round++) {
      cell[round & 1][me] = round;
#pragma omp barrier
      // Everybody has written this round, and nobody can be more than one barrier ahead.
      for (int k = 0; k < team; k++) wrong += cell[round & 1][k] != round;
#pragma omp barrier
    }
  }
  expect("barrier", wrong, 0);
}

static void exclusion(void) {
  long in_critical = 0, in_lock = 0, by_atomic = 0, once = 0;
  omp_lock_t lock;
  omp_init_lock(&lock);
#pragma omp parallel num_threads(kThreads)
  {
    for (int i = 0; i < 5000; i++) {
#pragma omp critical
      in_critical++;
      omp_set_lock(&lock);
      in_lock++;
      omp_unset_lock(&lock);
#pragma omp atomic
      by_atomic++;
    }
#pragma omp single
    once++;
  }
  omp_destroy_lock(&lock);
  expect("critical", in_critical, kThreads * 5000L);
  expect("lock", in_lock, kThreads * 5000L);
  expect("atomic", by_atomic, kThreads * 5000L);
  expect("single", once, 1);
}

static void order(void) {
  long last = -1, wrong = 0;
#pragma omp parallel for ordered schedule(static, 1) num_threads(kThreads)
  for (long i = 0; i < 2000; i++) {
#pragma omp ordered
    {
      wrong += last != i - 1;
      last = i;
    }
  }
  expect("ordered", wrong, 0);
}

static void tasks(void) {
  long value = 0;
#pragma omp parallel num_threads(kThreads)
#pragma omp single
  value = fib(24);
  expect("tasks", value, 46368);

  static long chain[65];
#pragma omp parallel num_threads(kThreads)
#pragma omp single
  for (int i = 1; i <= 64; i++) {
#pragma omp task depend(in : chain[i - 1]) depend(out : chain[i])
    chain[i] = chain[i - 1] + i;
  }
  expect("task dependences", chain[64], 64 * 65 / 2);
}

static void nested(void) {
  long bodies = 0;
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(4) reduction(+ : bodies)
  {
    long inner = 0;
#pragma omp parallel num_threads(3) reduction(+ : inner)
    inner += 1;
    bodies += inner;
  }
  expect("nested teams", bodies, 12);
}

int main(void) {
  omp_set_dynamic(0);
  omp_set_num_threads(kThreads);
  reductions();
  barriers();
  exclusion();
  order();
  tasks();
  nested();
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
