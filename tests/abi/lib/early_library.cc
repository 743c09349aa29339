// Linked by the program: its constructor starts threads and waits for one, before main.
#include <pthread.h>

#include <atomic>

static std::atomic<int> ran{0};
static pthread_t early[4];

__attribute__((constructor)) static void begin() {
  for (pthread_t& thread : early)
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          ++ran;
          return nullptr;
        },
        nullptr);
  pthread_join(early[0], nullptr);
}

extern "C" __attribute__((visibility("default"))) int early_join() {
  for (int i = 1; i < 4; ++i) pthread_join(early[i], nullptr);
  return ran;
}
