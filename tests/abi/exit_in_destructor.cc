// abi: threads=2
// pthread_exit in the destructor of a key's value, of a thread that has returned or called pthread_exit: the last value is
// the thread's, and it ends.
#include "abi.h"

static int first, second;
static pthread_key_t exiting;
static std::atomic<int> destroyed{0};

static void* body(void*) {
  CHECK_EQ(pthread_setspecific(exiting, &first), 0);
  if (destroyed < 0) pthread_exit(&first);
  return &first;
}

int main() {
  CHECK_EQ(pthread_key_create(&exiting,
                              [](void*) {
                                ++destroyed;
                                pthread_exit(&second);
                              }),
           0);
  for (int i = 0; i < 2; ++i) {
    destroyed = -i;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, nullptr, body, nullptr), 0);
    CHECK(join(thread) == &second);
    CHECK_EQ(destroyed, 1 - i);
  }
}
