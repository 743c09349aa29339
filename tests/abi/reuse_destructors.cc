// abi: threads=700 reused=60
// Destructors of thread_local objects and of keys run for each thread, objects first, before a joiner sees the end;
// threads between them that have none.
#include "abi.h"

static std::atomic<int> objects{0}, keys{0};
static pthread_key_t key;

struct Object {
  int id = 0;
  ~Object() {
    CHECK(pthread_getspecific(key) != nullptr);
    ++objects;
  }
};
static thread_local Object object;

static void plain() { CHECK(pthread_getspecific(key) == nullptr); }
static void with_both() {
  CHECK_EQ(object.id, 0);
  object.id = 1;
  CHECK_EQ(pthread_setspecific(key, &key), 0);
}

int main() {
  CHECK_EQ(pthread_key_create(&key, [](void*) { ++keys; }), 0);
  for (int i = 0; i < 100; ++i) {
    join(start(plain));
    join(start(with_both));
    CHECK_EQ(objects, i + 1);
    CHECK_EQ(keys, i + 1);
    join(start([] {
      plain();
      pthread_setspecific(key, &key);
    }));
    keys = i + 1;
    join(start(plain));
  }
  // The key was set and taken back: no destructor, and nothing left for the next thread.
  keys = 0;
  for (int i = 0; i < 100; ++i) {
    join(start([] {
      pthread_setspecific(key, &key);
      pthread_setspecific(key, nullptr);
    }));
    std::vector<pthread_t> threads;
    for (int j = 0; j < 2; ++j) threads.push_back(start(plain));
    join_all(threads);
  }
  CHECK_EQ(keys, 0);
}
