// abi: threads=1
// A program may get its first thread by any way there is, each tried in a process that has none: pthread_create, C11's
// thrd_create, pthread_create found in libc past what stands before it, a timer's SIGEV_THREAD, and a raw clone(2).
// The thread runs, has an id of its own, is known to tgkill, and blocks on a futex like any other.
#include <dlfcn.h>
#include <sched.h>
#include <sys/mman.h>
#include <threads.h>

#include "abi.h"

static std::atomic<uint32_t> word{0};
static std::atomic<pid_t> other{0};

static void body() {
  other = static_cast<pid_t>(syscall(SYS_gettid));
  while (word.load() == 0) futex(&word, FUTEX_WAIT_PRIVATE, 0);
  word = 2;
  futex(&word, FUTEX_WAKE_PRIVATE, 1);
}

// The thread is there, and waits until it is told.
static void meet() {
  while (other.load() == 0) sched_yield();
  CHECK(other.load() != getpid());
  CHECK_EQ(syscall(SYS_tgkill, getpid(), other.load(), 0), 0);
  word = 1;
  futex(&word, FUTEX_WAKE_PRIVATE, 1);
  while (word.load() != 2) sched_yield();
}

static void by_pthread() {
  pthread_t thread = start(body);
  meet();
  join(thread);
}

static void by_c11() {
  thrd_t thread;
  CHECK_EQ(thrd_create(
               &thread, [](void*) { return body(), 7; }, nullptr),
           thrd_success);
  meet();
  int result = 0;
  CHECK_EQ(thrd_join(thread, &result), thrd_success);
  CHECK_EQ(result, 7);
}

static void by_libc() {
  void* libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  CHECK(libc != nullptr);
  auto create = reinterpret_cast<decltype(&pthread_create)>(dlsym(libc, "pthread_create"));
  auto wait = reinterpret_cast<decltype(&pthread_join)>(dlsym(libc, "pthread_join"));
  CHECK(create && wait);
  pthread_t thread;
  CHECK_EQ(create(
               &thread, nullptr, [](void*) -> void* { return body(), nullptr; }, nullptr),
           0);
  meet();
  CHECK_EQ(wait(thread, nullptr), 0);
}

static void by_timer() {
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = [](sigval) { body(); };
  timer_t timer;
  CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  const itimerspec soon = {{0, 0}, {0, 1'000'000}};
  CHECK_EQ(timer_settime(timer, 0, &soon, nullptr), 0);
  meet();
  CHECK_EQ(timer_delete(timer), 0);
}

static char raw_stack[65536] __attribute__((aligned(64)));

static void by_clone() {
  constexpr int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  // By the function, which enters the other function on the new stack. No libc there: the thread has no TLS of its own.
  CHECK(clone(
            [](void*) {
              other = static_cast<pid_t>(syscall(SYS_gettid));
              while (word.load() == 0) futex(&word, FUTEX_WAIT_PRIVATE, 0);
              word = 2;
              syscall(SYS_exit, 0);
              return 0;
            },
            raw_stack + sizeof raw_stack, flags, nullptr) > 0);
  meet();
}

static void by_wait() {
  // A wait that nobody ends, before there is a second thread, leaves the condition as it was.
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < 3; ++i) {
    const timespec soon = after_ns(kMs, CLOCK_REALTIME);
    CHECK_EQ(pthread_cond_timedwait(&condition, &mutex, &soon), ETIMEDOUT);
  }
  bool done = false;
  pthread_t thread = start([&] {
    pthread_mutex_lock(&mutex);
    done = true;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
  });
  while (!done) pthread_cond_wait(&condition, &mutex);
  pthread_mutex_unlock(&mutex);
  join(thread);
}

int main() {
  for (auto way : {by_pthread, by_c11, by_libc, by_timer, by_clone, by_wait}) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      way();
      _exit(0);
    }
    wait_exit(child, 0);
  }
  // And this process, for the statistics.
  by_c11();
  return 0;
}
