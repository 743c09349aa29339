// abi: threads=11
// C11 threads: thrd, mtx (timed, recursive), cnd, tss with destructors, call_once.
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      _exit(1);                                                               \
    }                                                                         \
  } while (0)

static mtx_t mutex, recursive;
static cnd_t cond;
static tss_t key;
static once_flag once = ONCE_FLAG_INIT;
static int once_calls, arrived, released, destroyed, total;
static thread_local int own;

static void init_once(void) { ++once_calls; }

static void destroy(void* value) {
  CHECK(mtx_lock(&mutex) == thrd_success);
  ++destroyed;
  CHECK(mtx_unlock(&mutex) == thrd_success);
  free(value);
}

static int body(void* argument) {
  const int id = *(int*)argument;
  own = id;
  CHECK(tss_set(key, malloc(16)) == thrd_success);
  call_once(&once, init_once);
  CHECK(mtx_lock(&mutex) == thrd_success);
  ++arrived;
  CHECK(cnd_broadcast(&cond) == thrd_success);
  while (!released) CHECK(cnd_wait(&cond, &mutex) == thrd_success);
  total += own;
  CHECK(mtx_unlock(&mutex) == thrd_success);
  thrd_yield();
  CHECK(own == id);
  return id * 3;
}

static int timed(void* unused) {
  (void)unused;
  struct timespec deadline;
  CHECK(timespec_get(&deadline, TIME_UTC) == TIME_UTC);
  deadline.tv_nsec += 20000000;
  if (deadline.tv_nsec >= 1000000000) {
    deadline.tv_nsec -= 1000000000;
    ++deadline.tv_sec;
  }
  CHECK(mtx_timedlock(&recursive, &deadline) == thrd_timedout);
  CHECK(mtx_trylock(&recursive) == thrd_busy);
  const struct timespec nap = {0, 5000000};
  CHECK(thrd_sleep(&nap, NULL) == 0);
  return 1;
}

int main(void) {
  CHECK(mtx_init(&mutex, mtx_plain) == thrd_success);
  CHECK(mtx_init(&recursive, mtx_timed | mtx_recursive) == thrd_success);
  CHECK(cnd_init(&cond) == thrd_success);
  CHECK(tss_create(&key, destroy) == thrd_success);
  thrd_t threads[10];
  int ids[10];
  for (int i = 0; i < 10; ++i) {
    ids[i] = i + 1;
    CHECK(thrd_create(&threads[i], body, &ids[i]) == thrd_success);
  }
  CHECK(mtx_lock(&mutex) == thrd_success);
  while (arrived < 10) CHECK(cnd_wait(&cond, &mutex) == thrd_success);
  released = 1;
  CHECK(cnd_broadcast(&cond) == thrd_success);
  CHECK(mtx_unlock(&mutex) == thrd_success);
  for (int i = 0; i < 10; ++i) {
    int result;
    CHECK(thrd_join(threads[i], &result) == thrd_success);
    CHECK(result == ids[i] * 3);
  }
  CHECK(total == 55 && once_calls == 1 && destroyed == 10);
  CHECK(mtx_lock(&recursive) == thrd_success && mtx_lock(&recursive) == thrd_success);
  thrd_t other;
  int result;
  CHECK(thrd_create(&other, timed, NULL) == thrd_success);
  CHECK(thrd_join(other, &result) == thrd_success && result == 1);
  return 0;
}
