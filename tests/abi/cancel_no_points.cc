// abi: threads=21
// With a request pending, what is no cancellation point (pthreads(7)) does its work: locks, barriers, thread and signal
// functions, memory, and system calls made by syscall(2).
#include <dlfcn.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sem.h>

#include "cancel.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static sem_t sem;
static pthread_key_t key;
static timespec late;
static int ends[2];

static std::vector<Point> of_threads() {
  return {
      {"pthread_mutex_lock",
       [] {
         CHECK_EQ(pthread_mutex_lock(&mutex), 0);
         CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
         CHECK_EQ(pthread_mutex_trylock(&mutex), 0);
         CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
         CHECK_EQ(pthread_mutex_timedlock(&mutex, &late), 0);
         CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
       }},
      {"pthread_rwlock",
       [] {
         CHECK_EQ(pthread_rwlock_rdlock(&lock), 0);
         CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
         CHECK_EQ(pthread_rwlock_wrlock(&lock), 0);
         CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
         CHECK_EQ(pthread_rwlock_timedwrlock(&lock, &late), 0);
         CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
       }},
      {"pthread_barrier_wait",
       [] { CHECK_EQ(pthread_barrier_wait(&barrier), PTHREAD_BARRIER_SERIAL_THREAD); }},
      {"pthread_spin_lock",
       [] {
         CHECK_EQ(pthread_spin_lock(&spin), 0);
         CHECK_EQ(pthread_spin_unlock(&spin), 0);
       }},
      {"pthread_cond_signal",
       [] {
         CHECK_EQ(pthread_cond_signal(&cond), 0);
         CHECK_EQ(pthread_cond_broadcast(&cond), 0);
       }},
      {"sem_post",
       [] {
         CHECK_EQ(sem_post(&sem), 0);
         CHECK_EQ(sem_trywait(&sem), 0);
         CHECK_ERRNO(sem_trywait(&sem), EAGAIN);
       }},
      {"pthread_create",
       [] {
         std::atomic<bool> ran{false};
         const pthread_t detached = start([&ran] { ran = true; });
         CHECK_EQ(pthread_detach(detached), 0);
         while (!ran) sched_yield();
       }},
      {"pthread_once",
       [] {
         static pthread_once_t once = PTHREAD_ONCE_INIT;
         CHECK_EQ(pthread_once(&once, [] {}), 0);
       }},
      {"pthread_setspecific",
       [] {
         CHECK_EQ(pthread_setspecific(key, &key), 0);
         CHECK(pthread_getspecific(key) == &key);
       }},
      {"pthread_setcancelstate",
       [] {
         CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr), 0);
         CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr), 0);
         CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, nullptr), 0);
       }},
      {"pthread_cancel", [] { CHECK_EQ(pthread_cancel(pthread_self()), 0); }},
  };
}

static std::vector<Point> of_processes() {
  return {
      {"pthread_kill",
       [] {
         CHECK_EQ(pthread_kill(pthread_self(), 0), 0);
         CHECK_EQ(raise(SIGURG), 0);
         CHECK_EQ(kill(getpid(), 0), 0);
         sigset_t set;
         CHECK_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &set), 0);
         CHECK_EQ(sigpending(&set), 0);
       }},
      {"sched_yield", [] { CHECK_EQ(sched_yield(), 0); }},
      {"malloc",
       [] {
         void* volatile block = malloc(1 << 20);
         free(block);
       }},
      {"mmap",
       [] {
         void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         CHECK(page != MAP_FAILED);
         CHECK_EQ(munmap(page, 4096), 0);
       }},
      {"pipe and dup",
       [] {
         int two[2];
         CHECK_EQ(pipe(two), 0);
         const int copy = dup(two[0]);
         CHECK(copy >= 0);
         for (const int fd : {two[0], two[1], copy}) syscall(SYS_close, fd);
       }},
      {"fcntl, F_SETLK",
       [] {
         CHECK(fcntl(ends[0], F_GETFL) >= 0);
         CHECK_EQ(flock(ends[0], LOCK_SH), 0);
       }},
      {"semop",
       [] {
         const int set = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
         sembuf up = {0, 1, 0};
         CHECK_EQ(semop(set, &up, 1), 0);
         CHECK_EQ(semctl(set, 0, IPC_RMID), 0);
       }},
      {"syscall(2)",
       [] {
         char byte = 'x';
         CHECK_EQ(syscall(SYS_write, ends[1], &byte, 1), 1);
         CHECK_EQ(syscall(SYS_read, ends[0], &byte, 1), 1);
         const timespec moment = {0, 1000};
         CHECK_EQ(syscall(SYS_nanosleep, &moment, nullptr), 0);
       }},
      {"dlopen",
       [] {
         void* library = dlopen((executable_directory() + "/plugin.so").c_str(), RTLD_NOW);
         (void)library;  // what the loader opens and reads it does by calls of its own
       }},
  };
}

int main() {
  late = after_ns(1000 * kSecond, CLOCK_REALTIME);
  CHECK_EQ(pthread_barrier_init(&barrier, nullptr, 1), 0);
  CHECK_EQ(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
  CHECK_EQ(sem_init(&sem, 0, 0), 0);
  CHECK_EQ(pthread_key_create(&key, nullptr), 0);
  CHECK_EQ(pipe(ends), 0);
  not_cancelled(of_threads());
  not_cancelled(of_processes());
}
