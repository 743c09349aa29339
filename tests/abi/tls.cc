// abi: threads=200
// Thread-local storage: initialisers, addresses of one's own, C++ destructors in reverse order, keys and their
// destructors run again while they set values.
#include "abi.h"

static __thread int plain_tls = 41;
static thread_local std::string text = "initial";
static std::atomic<int> destroyed{0}, key_calls{0};

struct Counted {
  int64_t guard = 0x1234;
  ~Counted() {
    CHECK_EQ(guard, 0x1234);
    ++destroyed;
  }
};
static thread_local Counted counted;
static pthread_key_t key, again_key;
static __thread char large[100000];

static void body(int id) {
  CHECK_EQ(plain_tls, 41);
  CHECK(text == "initial");
  plain_tls = id;
  text = std::to_string(id);
  counted.guard = 0x1234;
  large[99999] = static_cast<char>(id);
  pthread_setspecific(key, new int(id));
  pthread_setspecific(again_key, reinterpret_cast<void*>(3));
  for (int i = 0; i < 20; ++i) {
    burn(20'000);
    sched_yield();
    CHECK_EQ(plain_tls, id);
    CHECK(text == std::to_string(id));
    CHECK_EQ(*static_cast<int*>(pthread_getspecific(key)), id);
    CHECK_EQ(large[99999], static_cast<char>(id));
  }
}

int main() {
  CHECK_EQ(pthread_key_create(&key,
                              [](void* value) {
                                CHECK(*static_cast<int*>(value) == plain_tls);
                                delete static_cast<int*>(value);
                                ++key_calls;
                              }),
           0);
  CHECK_EQ(pthread_key_create(&again_key,
                              [](void* value) {
                                const auto left = reinterpret_cast<uintptr_t>(value) - 1;
                                if (left != 0) pthread_setspecific(again_key, reinterpret_cast<void*>(left));
                                ++key_calls;
                              }),
           0);
  for (int round = 0; round < 4; ++round) {
    std::vector<pthread_t> threads;
    for (int i = 0; i < 50; ++i) threads.push_back(start([i] { body(i + 100); }));
    join_all(threads);
  }
  CHECK_EQ(plain_tls, 41);
  CHECK_EQ(destroyed, 200);
  CHECK_EQ(key_calls, 200 * 4);
}
