// Starts a thread in its constructor, and ends it in its destructor, as numerical libraries do.
#include <pthread.h>

#include <atomic>

static std::atomic<int> work{0};
static std::atomic<bool> stop{false};
static pthread_t worker;

__attribute__((constructor)) static void begin() {
  pthread_create(
      &worker, nullptr,
      [](void*) -> void* {
        while (!stop) ++work;
        return nullptr;
      },
      nullptr);
}

__attribute__((destructor)) static void end() {
  stop = true;
  pthread_join(worker, nullptr);
}

extern "C" __attribute__((visibility("default"))) int eager_work() { return work; }
