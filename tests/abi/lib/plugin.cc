// Loaded with dlopen after start: makes threads itself and has a system call instruction of its own.
#include <pthread.h>
#include <sys/syscall.h>

static long raw_call(long number) {
  long result;
  asm volatile("syscall" : "=a"(result) : "a"(number) : "rcx", "r11", "memory");
  return result;
}

static __thread int own = 5;

extern "C" __attribute__((visibility("default"))) int plugin_run(int threads) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static int sum;
  sum = 0;
  pthread_t made[64];
  for (int i = 0; i < threads; ++i)
    if (pthread_create(
            &made[i], nullptr,
            [](void*) -> void* {
              for (int round = 0; round < 20; ++round) raw_call(SYS_sched_yield);
              pthread_mutex_lock(&mutex);
              sum += own++;
              pthread_mutex_unlock(&mutex);
              return nullptr;
            },
            nullptr) != 0)
      return -1;
  for (int i = 0; i < threads; ++i) pthread_join(made[i], nullptr);
  return sum;
}

extern "C" __attribute__((visibility("default"))) long plugin_gettid() { return raw_call(SYS_gettid); }
