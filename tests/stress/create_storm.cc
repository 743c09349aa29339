// Threads made and ended as fast as possible, by several creators at once: trees of them, joined, detached or
// cancelled, with stacks of many sizes. Every one is accounted for exactly once, finds zeroed thread-local storage
// and a stack that is its own.
#include <alloca.h>
#include <limits.h>

#include <algorithm>

#include "stress.h"

namespace {

std::atomic<bool> stop{false};
std::atomic<int64_t> created{0}, bodies{0}, destroyed{0}, joined{0}, detached{0}, cancelled{0};
std::atomic<int> live{0};
pthread_key_t key;
thread_local int64_t zero = 0;
thread_local int64_t seven = 7;
constexpr int kMostLive = 600;

struct Task {
  uint64_t seed;
  int depth;
  size_t stack;
  bool cancel;
};

void* body(void* argument);

size_t random_stack(Random& random) {
  switch (random.below(6)) {
    case 0:
      return kTsan ? size_t{256} * 1024 : static_cast<size_t>(PTHREAD_STACK_MIN) + 64 * 1024;
    case 1:
      return 256 * 1024;
    case 2:
      return 1 << 20;
    case 3:
      return 16 << 20;
    default:
      return 8 << 20;
  }
}

pthread_t create(Random& random, int depth, bool detach, bool cancel) {
  const Doing doing(Op::kCreating);
  auto* task = new Task{random.next(), depth, random_stack(random), cancel};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  CHECK_EQ(pthread_attr_setstacksize(&attributes, task->stack), 0);
  if (detach) CHECK_EQ(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED), 0);
  if (random.one_in(5)) CHECK_EQ(pthread_attr_setguardsize(&attributes, random.one_in(2) ? 0 : 16384), 0);
  pthread_t thread;
  ++created;
  ++live;
  const int error = pthread_create(&thread, &attributes, body, task);
  if (error != 0) FAIL("pthread_create with a stack of %zu: %s", task->stack, strerror(error));
  pthread_attr_destroy(&attributes);
  return thread;
}

// Fills part of the stack and finds it unchanged after others had their turn.
__attribute__((noinline)) void use_stack(uint64_t seed, size_t size) {
  auto* block = static_cast<volatile unsigned char*>(alloca(size));
  for (size_t at = 0; at < size; at += 128) block[at] = static_cast<unsigned char>(seed + at);
  sched_yield();
  for (size_t at = 0; at < size; at += 128) CHECK_EQ(block[at], static_cast<unsigned char>(seed + at));
}

void crowd(Random& random, int depth) {
  pthread_t threads[8];
  bool cancels[8];
  int number = 0;
  const int wanted = 1 + random.below(8);
  for (int i = 0; i < wanted; ++i) {
    const int kind = random.below(8);
    if (kind == 0) {
      create(random, depth, true, false);
      continue;
    }
    cancels[number] = kind == 1;
    threads[number] = create(random, depth, false, kind == 1);
    if (kind == 2) {
      CHECK_EQ(pthread_detach(threads[number]), 0);
      ++detached;
      continue;
    }
    ++number;
  }
  for (int i = 0; i < number; ++i) {
    const Doing doing(Op::kJoining);
    if (cancels[i]) CHECK_EQ(pthread_cancel(threads[i]), 0);
    void* result = join(threads[i]);
    CHECK(result == (cancels[i] ? PTHREAD_CANCELED : &created));
    ++joined;
    cancelled += cancels[i];
  }
}

void* body(void* argument) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  const Task task = *static_cast<Task*>(argument);
  delete static_cast<Task*>(argument);
  CHECK_EQ(zero, 0);
  CHECK_EQ(seven, 7);
  zero = seven = static_cast<int64_t>(task.seed);
  pthread_setspecific(key, &key);
  ++bodies;
  Random random(task.seed);
  if (random.one_in(3)) use_stack(task.seed, std::min<size_t>(task.stack / 4, 128 * 1024));
  if (task.depth > 0 && !stop && live < kMostLive && random.one_in(3)) crowd(random, task.depth - 1);
  if (random.one_in(4)) sched_yield();
  CHECK_EQ(zero, static_cast<int64_t>(task.seed));
  CHECK_EQ(seven, static_cast<int64_t>(task.seed));
  if (task.cancel) {
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    for (;;) {
      pthread_testcancel();
      sched_yield();
    }
  }
  if (random.one_in(2)) pthread_exit(&created);
  return &created;
}

}  // namespace

int main(int count, char** arguments) {
  Options options = begin(count, arguments);
  if (options.threads <= 0) options.threads = 4;
  CHECK_EQ(pthread_key_create(&key,
                              [](void*) {
                                forget_poisoned_stack();
                                ++destroyed;
                                --live;
                              }),
           0);
  std::vector<pthread_t> creators;
  for (int i = 0; i < options.threads; ++i)
    creators.push_back(start([i, &options] {
      enter_slot(i);
      Random random(options.seed, static_cast<uint64_t>(i));
      while (!stop) {
        crowd(random, 3);
        while (live > kMostLive) {
          const Doing doing(Op::kSleeping);
          nap(kMs);
        }
      }
      table->slots[i].op = Op::kEnded;
    }));
  enter_slot(options.threads);
  nap(options.duration_ns());
  stop = true;
  {
    const Doing doing(Op::kJoining);
    join_all(creators);
  }
  for (int i = 0; destroyed < created && i < 20'000; ++i) nap(kMs);
  CHECK_EQ(bodies, created);
  CHECK_EQ(destroyed, created);
  CHECK_EQ(live, 0);
  CHECK(joined > 0 && joined + detached <= created);
  printf("%lld threads (%lld joined, %lld cancelled)\n", (long long)created, (long long)joined,
         (long long)cancelled);
}
