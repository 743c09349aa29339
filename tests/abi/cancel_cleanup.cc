// abi: threads=6
// Cancellation unwinds: clean-up handlers in reverse order, C++ destructors, catch (...) that rethrows, then TLS
// destructors; disabled cancellation waits; pthread_exit unwinds the same way.
#include "abi.h"

static std::string order;
static pthread_key_t key;

struct Note {
  char c;
  ~Note() { order += c; }
};

static void deeper() {
  const Note note{'2'};
  pthread_cleanup_push([](void* text) { order += static_cast<char*>(text); }, const_cast<char*>("1"));
  nap(1000 * kSecond);
  pthread_cleanup_pop(0);
}

static void body() {
  pthread_setspecific(key, &key);
  const Note note{'4'};
  try {
    deeper();
  } catch (...) {
    order += '3';
    throw;
  }
}

int main() {
  CHECK_EQ(pthread_key_create(&key, [](void*) { order += '5'; }), 0);
  const pthread_t thread = start(body);
  settle();
  CHECK_EQ(pthread_cancel(thread), 0);
  CHECK(join(thread) == PTHREAD_CANCELED);
  CHECK(order == "12345");

  order.clear();
  pthread_t exiting;
  CHECK_EQ(pthread_create(
               &exiting, nullptr,
               [](void*) -> void* {
                 const Note outer{'b'};
                 pthread_cleanup_push([](void*) { order += 'a'; }, nullptr);
                 pthread_exit(&key);
                 pthread_cleanup_pop(0);
                 return nullptr;
               },
               nullptr),
           0);
  CHECK(join(exiting) == &key);
  CHECK(order == "ab");

  std::atomic<int> step{0};
  const pthread_t guarded = start([&step] {
    int old;
    CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old), 0);
    CHECK_EQ(old, PTHREAD_CANCEL_ENABLE);
    step = 1;
    nap(60 * kMs);
    step = 2;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    pthread_testcancel();
    step = 3;
  });
  while (step < 1) sched_yield();
  CHECK_EQ(pthread_cancel(guarded), 0);
  CHECK(join(guarded) == PTHREAD_CANCELED);
  CHECK_EQ(step, 2);

  // Before it has run at all, and itself.
  const pthread_t early = start([] { nap(1000 * kSecond); });
  CHECK_EQ(pthread_cancel(early), 0);
  CHECK(join(early) == PTHREAD_CANCELED);
  const pthread_t self = start([] {
    pthread_cancel(pthread_self());
    pthread_testcancel();
    FAIL("went on after cancelling itself");
  });
  CHECK(join(self) == PTHREAD_CANCELED);
  const pthread_t done = start([] {});
  settle();
  cancel_perhaps_ended(done);
  CHECK(join(done) == nullptr);
}
