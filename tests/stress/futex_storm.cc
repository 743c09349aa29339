// Raw futex calls at random on a few words: waits (plain, bitset, both clocks, without and with time-outs), wakes,
// requeues, WAKE_OP. Every wait that returns 0 was ended by exactly one wake that counted it, wherever it had been
// moved; no wait ends early; a lock made of the same calls lets one in at a time.
#include <limits.h>

#include <algorithm>

#include "stress.h"

namespace {

constexpr int kWords = 6;

struct alignas(64) Word {
  std::atomic<uint32_t> value{0};
} words[kWords];

struct alignas(64) FutexLock {
  std::atomic<uint32_t> word{0};
  Pair pair;
} lock;

std::atomic<bool> stop{false};
std::atomic<int64_t> woken{0}, returned{0}, timeouts{0}, unequal{0}, moved{0};

const void* number(uintptr_t value) { return reinterpret_cast<const void*>(value); }

void wait(Random& random) {
  const int which = random.below(kWords);
  Word& word = words[which];
  const uint32_t seen = word.value;
  const Doing doing(Op::kFutexWait, which);
  const int kind = random.below(4);
  const int64_t time = random.below(2'000'000), begin_ns = now_ns();
  long result;
  if (kind < 2) {
    const timespec relative = to_timespec(time);
    result = futex(&word.value, FUTEX_WAIT_PRIVATE, seen, &relative);
  } else {
    const bool realtime = kind == 3;
    const timespec deadline = after_ns(time, realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC);
    result = futex(&word.value, FUTEX_WAIT_BITSET_PRIVATE | (realtime ? FUTEX_CLOCK_REALTIME : 0), seen,
                   &deadline, nullptr, 1u << random.below(4));
  }
  if (result == 0) {
    ++returned;
  } else if (errno == ETIMEDOUT) {
    CHECK(kind == 3 || now_ns() - begin_ns >= time);
    ++timeouts;
  } else {
    CHECK_EQ(errno, EAGAIN);
    ++unequal;
  }
}

// Ended by nothing but a wake: after `stop` the main thread wakes until all are gone.
void wait_without_time(Random& random) {
  const int which = random.below(kWords);
  const Doing doing(Op::kFutexWait, which);
  if (futex(&words[which].value, FUTEX_WAIT_PRIVATE, words[which].value) == 0)
    ++returned;
  else
    CHECK_EQ(errno, EAGAIN);
}

void wake(Random& random) {
  Word& word = words[random.below(kWords)];
  if (random.one_in(2)) ++word.value;
  const int most = random.one_in(4) ? INT_MAX : random.below(4);
  long result;
  if (random.one_in(2))
    result = futex(&word.value, FUTEX_WAKE_PRIVATE, static_cast<uint32_t>(most));
  else
    result = futex(&word.value, FUTEX_WAKE_BITSET_PRIVATE, static_cast<uint32_t>(most), nullptr, nullptr,
                   1 + static_cast<uint32_t>(random.below(15)));
  // Asked for none, Linux wakes one: the limit is tested after each.
  CHECK(result >= 0 && result <= std::max(most, 1));
  woken += result;
}

// Moves without waking: then the answer is the number moved, and the wakes still add up.
void requeue(Random& random) {
  const int from = random.below(kWords), to = (from + 1 + random.below(kWords - 1)) % kWords;
  const int most = random.below(5);
  long result;
  if (random.one_in(2)) {
    result = futex(&words[from].value, FUTEX_REQUEUE_PRIVATE, 0, number(static_cast<uintptr_t>(most)),
                   &words[to].value);
  } else {
    result = futex(&words[from].value, FUTEX_CMP_REQUEUE_PRIVATE, 0, number(static_cast<uintptr_t>(most)),
                   &words[to].value, words[from].value);
    if (result == -1) {
      CHECK_EQ(errno, EAGAIN);
      return;
    }
  }
  CHECK(result >= 0 && result <= most);
  moved += result;
}

void wake_op(Random& random) {
  const int first = random.below(kWords), second = (first + 1 + random.below(kWords - 1)) % kWords;
  const uint32_t add_one_if_not_zero = 1u << 28 | 1u << 24 | 1u << 12;
  const long result = futex(&words[first].value, FUTEX_WAKE_OP_PRIVATE, 1, number(1), &words[second].value,
                            add_one_if_not_zero);
  CHECK(result >= 0 && result <= 2);
  woken += result;
}

void use_lock(Random& random) {
  {
    const Doing doing(Op::kFutexLock, 0);
    uint32_t seen = 0;
    if (!lock.word.compare_exchange_strong(seen, 1)) {
      if (seen != 2) seen = lock.word.exchange(2);
      while (seen != 0) {
        futex(&lock.word, FUTEX_WAIT_PRIVATE, 2);
        seen = lock.word.exchange(2);
      }
    }
  }
  set_owner(ObjectKind::kFutexLock, 0, true);
  lock.pair.step([&random] {
    if (random.one_in(5)) sched_yield();
  });
  set_owner(ObjectKind::kFutexLock, 0, false);
  if (lock.word.exchange(0) == 2) futex(&lock.word, FUTEX_WAKE_PRIVATE, 1);
}

void body(int index, uint64_t seed) {
  enter_slot(index);
  Random random(seed, static_cast<uint64_t>(index));
  while (!stop) {
    switch (random.below(10)) {
      case 0:
      case 1:
      case 2:
        wait(random);
        break;
      case 3:
        wait_without_time(random);
        break;
      case 4:
      case 5:
        wake(random);
        break;
      case 6:
        requeue(random);
        break;
      case 7:
        wake_op(random);
        break;
      default:
        use_lock(random);
    }
  }
  table->slots[index].op = Op::kEnded;
}

}  // namespace

int main(int count, char** arguments) {
  Options options = begin(count, arguments);
  if (options.threads <= 0) options.threads = 24;
  std::atomic<int> ended{0};
  std::vector<pthread_t> threads;
  for (int i = 0; i < options.threads; ++i)
    threads.push_back(start([i, &options, &ended] {
      body(i, options.seed);
      ++ended;
    }));
  enter_slot(options.threads);
  Random random(options.seed, 1'000'000);
  const int64_t end = now_ns() + options.duration_ns();
  const auto wake_everybody = [] {
    for (Word& word : words) {
      ++word.value;
      const long result = futex(&word.value, FUTEX_WAKE_PRIVATE, INT_MAX);
      CHECK(result >= 0);
      woken += result;
    }
  };
  while (now_ns() < end) {
    // Somebody must go on when all the others wait without a time-out.
    nap(random.below(2'000'000));
    wake_everybody();
  }
  stop = true;
  while (ended < options.threads) {
    wake_everybody();
    nap(kMs);
  }
  join_all(threads);
  for (Word& word : words) CHECK_EQ(futex(&word.value, FUTEX_WAKE_PRIVATE, INT_MAX), 0);
  CHECK_EQ(returned, woken);
  CHECK_EQ(lock.pair.a, lock.pair.b);
  CHECK_EQ(lock.word, 0);
  CHECK(lock.pair.a > 0 && returned > 0);
  printf("%lld woken, %lld time-outs, %lld unequal, %lld moved, %lld locked\n", (long long)woken,
         (long long)timeouts, (long long)unequal, (long long)moved, (long long)lock.pair.a);
}
