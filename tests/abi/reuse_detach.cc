// abi: threads=30 reused=5
// To detach a thread that somebody waits for changes nothing: the join gets its result.
#include "abi.h"

int main() {
  for (int i = 0; i < 10; ++i) join(start([] {}));
  for (int i = 0; i < 5; ++i) {
    pthread_t thread;
    void* const token = &thread;
    const auto body = [](void* argument) -> void* {
      settle();
      CHECK_EQ(pthread_detach(pthread_self()), 0);
      return argument;
    };
    CHECK_EQ(pthread_create(&thread, nullptr, body, token), 0);
    void* result = nullptr;
    CHECK_EQ(pthread_join(thread, &result), 0);
    CHECK(result == token);
    for (int k = 0; k < 5; ++k) join(start([] {}));
  }
}
