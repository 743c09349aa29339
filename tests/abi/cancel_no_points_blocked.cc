// abi: threads=11
// A thread that is blocked where no cancellation point is (pthreads(7)) goes on waiting when a request arrives, gets
// what it waited for, without an error, and is cancelled at the next point only: locks, barrier, once, flock, and
// system calls made by syscall(2). (From 2.41 on glibc sends its signal at any request: semop, which a signal always ends,
// is left out.)
#include <fcntl.h>
#include <sys/file.h>

#include "cancel.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static std::atomic<bool> in_once{false}, leave_once{false};
static std::atomic<uint32_t> word{0};
static int ends[2], holder, other;
static timespec late;

static const std::vector<Point> points = {
    {"pthread_mutex_lock",
     [] {
       CHECK_EQ(pthread_mutex_lock(&mutex), 0);
       CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
     }},
    {"pthread_mutex_timedlock",
     [] {
       CHECK_EQ(pthread_mutex_timedlock(&mutex, &late), 0);
       CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
     }},
    {"pthread_rwlock_rdlock",
     [] {
       CHECK_EQ(pthread_rwlock_rdlock(&lock), 0);
       CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
     }},
    {"pthread_rwlock_wrlock",
     [] {
       CHECK_EQ(pthread_rwlock_wrlock(&lock), 0);
       CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
     }},
    {"pthread_barrier_wait",
     [] {
       const int result = pthread_barrier_wait(&barrier);
       CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
     }},
    {"pthread_spin_lock",
     [] {
       CHECK_EQ(pthread_spin_lock(&spin), 0);
       CHECK_EQ(pthread_spin_unlock(&spin), 0);
     }},
    {"pthread_once", [] { CHECK_EQ(pthread_once(&once, [] { FAIL("not the first"); }), 0); }},
    {"flock", [] { CHECK_EQ(flock(other, LOCK_EX), 0); }},
    {"syscall(SYS_read)",
     [] {
       char byte;
       CHECK_EQ(syscall(SYS_read, ends[0], &byte, 1), 1);
     }},
    {"syscall(SYS_futex)",
     [] {
       while (word == 0) CHECK(futex(&word, FUTEX_WAIT_PRIVATE, 0) == 0 || errno == EAGAIN);
     }},
};

int main() {
  late = after_ns(1000 * kSecond, CLOCK_REALTIME);
  CHECK_EQ(pthread_barrier_init(&barrier, nullptr, 2), 0);
  CHECK_EQ(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
  CHECK_EQ(pipe(ends), 0);
  char name[] = "/tmp/upcall-abi-cancel.XXXXXX";
  holder = mkstemp(name);
  other = open(name, O_RDWR);
  unlink(name);
  CHECK_EQ(flock(holder, LOCK_EX), 0);
  pthread_mutex_lock(&mutex);
  pthread_rwlock_wrlock(&lock);
  pthread_spin_lock(&spin);
  const pthread_t first = start([] {
    pthread_once(&once, [] {
      in_once = true;
      while (!leave_once) sched_yield();
    });
  });
  while (!in_once) sched_yield();

  std::vector<Unwound> seen(points.size());
  std::vector<pthread_t> threads;
  for (size_t i = 0; i < points.size(); ++i) {
    Unwound* one = &seen[i];
    const Point* point = &points[i];
    threads.push_back(start([one, point] {
      one->entered = true;
      point->call();
      one->returned = true;
      pthread_testcancel();
      FAIL("%s: the request is gone", point->name);
    }));
    while (!seen[i].entered) sched_yield();
  }
  settle();
  for (pthread_t thread : threads) CHECK_EQ(pthread_cancel(thread), 0);
  settle();
  for (size_t i = 0; i < points.size(); ++i) {
    if (seen[i].returned || pthread_tryjoin_np(threads[i], nullptr) != EBUSY)
      FAIL("%s has ended", points[i].name);
  }
  pthread_mutex_unlock(&mutex);
  pthread_rwlock_unlock(&lock);
  pthread_spin_unlock(&spin);
  pthread_barrier_wait(&barrier);
  leave_once = true;
  flock(holder, LOCK_UN);
  CHECK_EQ(write(ends[1], "x", 1), 1);
  word = 1;
  futex(&word, FUTEX_WAKE_PRIVATE, 1);
  for (size_t i = 0; i < points.size(); ++i) {
    CHECK(join(threads[i]) == PTHREAD_CANCELED);
    if (!seen[i].returned) FAIL("%s was cancelled", points[i].name);
  }
  join(first);
}
