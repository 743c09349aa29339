// abi: threads=8
// Thread-specific data (pthread_key_create(3)): thread_local objects are destroyed first, in reverse order of their
// making, then keys' values; a destructor that sets a value anew is called again, PTHREAD_DESTRUCTOR_ITERATIONS times;
// values of deleted keys and null ones are not destroyed; new threads find null, in old keys and in keys that are used
// again.
#include <limits.h>

#include "abi.h"

static std::string order;
static std::atomic<int> calls;
static pthread_key_t again, chained, end_of_chain, deleted;

struct Note {
  char c = '?';
  ~Note() { order += c; }
};
static thread_local Note one, two;

static void set_again(void* value) {
  ++calls;
  CHECK(pthread_getspecific(again) == nullptr);  // set to null before the call
  CHECK_EQ(pthread_setspecific(again, value), 0);
}

int main() {
  CHECK_EQ(pthread_key_create(&again, set_again), 0);
  for (int i = 0; i < 2; ++i) {
    calls = 0;
    join(start([] { CHECK_EQ(pthread_setspecific(again, &calls), 0); }));
    CHECK_EQ(calls, PTHREAD_DESTRUCTOR_ITERATIONS);
    CHECK_EQ(sysconf(_SC_THREAD_DESTRUCTOR_ITERATIONS), PTHREAD_DESTRUCTOR_ITERATIONS);
  }
  join(start([] {
    for (const pthread_key_t key : {again, chained}) CHECK(pthread_getspecific(key) == nullptr);
  }));

  CHECK_EQ(pthread_key_create(&chained,
                              [](void* value) {
                                order += 'k';
                                CHECK(pthread_setspecific(end_of_chain, value) == 0);
                              }),
           0);
  CHECK_EQ(pthread_key_create(&end_of_chain, [](void*) { order += 'e'; }), 0);
  CHECK_EQ(pthread_key_create(&deleted, [](void*) { order += 'x'; }), 0);
  order.clear();
  join(start([] {
    CHECK_EQ(pthread_setspecific(chained, &order), 0);
    CHECK_EQ(pthread_setspecific(deleted, &order), 0);
    CHECK_EQ(pthread_key_delete(deleted), 0);
    two.c =
        '2';  // first used, last destroyed: both of this file are made at once, in order of their definition
    one.c = '1';
  }));
  CHECK(order == "21ke");

  // A key in its place: no value of old is seen.
  pthread_key_t reused;
  CHECK_EQ(pthread_key_create(&reused, nullptr), 0);
  CHECK(pthread_getspecific(reused) == nullptr);
  join(start([reused] { CHECK(pthread_getspecific(reused) == nullptr); }));
  // A value that is null again; a key without destructor.
  order.clear();
  join(start([reused] {
    CHECK_EQ(pthread_setspecific(end_of_chain, &order), 0);
    CHECK_EQ(pthread_setspecific(end_of_chain, nullptr), 0);
    CHECK_EQ(pthread_setspecific(reused, &order), 0);
  }));
  CHECK(order.empty());
  CHECK_EQ(pthread_setspecific(deleted == reused ? reused + 1 : deleted, &order), EINVAL);

  // A key made in a destructor; and a thread.
  static pthread_key_t maker;
  CHECK_EQ(pthread_key_create(&maker,
                              [](void*) {
                                pthread_key_t late;
                                CHECK(pthread_key_create(&late, [](void*) { order += 'l'; }) == 0);
                                CHECK(pthread_setspecific(late, &order) == 0);
                                join(start([] { order += 't'; }));
                              }),
           0);
  order.clear();
  join(start([] { CHECK_EQ(pthread_setspecific(maker, &order), 0); }));
  CHECK(order == "tl");
}
