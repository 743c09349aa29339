// What the threads of the storm do, and the objects that they do it with.
#include "storm.h"

#include <algorithm>

namespace upcall::test::storm {

Lock locks[kMutexes];
FutexLock futex_locks[kFutexLocks];
Shared shared[kRwLocks];
Box boxes[kBoxes];
Pipe pipes[kPipes];
sem_t units;
std::atomic<int> units_used{0};
sem_t doom_sem;
int doom_pipe[2];

namespace {

pthread_mutex_t doom_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t doom_cond = PTHREAD_COND_INITIALIZER;

void idle_a_little(Random& random) {
  switch (random.below(4)) {
    case 0: {
      const Doing doing(Op::kYielding);
      sched_yield();
      break;
    }
    case 1: {
      const Doing doing(Op::kSleeping);
      nap(random.below(200'000));
      break;
    }
    default:
      burn(random.below(20'000));
  }
}

void use_mutex(Random& random) {
  const int which = random.below(kMutexes);
  Lock& lock = locks[which];
  {
    const Doing doing(Op::kMutex, which);
    int error;
    switch (random.below(kTsan ? 3 : 4)) {
      case 0:
        error = pthread_mutex_trylock(&lock.mutex);
        CHECK(error == 0 || error == EBUSY);
        break;
      case 1: {
        const timespec deadline = after_ns(random.below(1'000'000), CLOCK_REALTIME);
        error = pthread_mutex_timedlock(&lock.mutex, &deadline);
        CHECK(error == 0 || error == ETIMEDOUT);
        break;
      }
      case 2:
        error = pthread_mutex_lock(&lock.mutex);
        CHECK_EQ(error, 0);
        break;
      default: {
        const timespec deadline = after_ns(random.below(1'000'000));
        error = pthread_mutex_clocklock(&lock.mutex, CLOCK_MONOTONIC, &deadline);
        CHECK(error == 0 || error == ETIMEDOUT);
      }
    }
    if (error != 0) {
      if (error == ETIMEDOUT) ++counts.timeouts;
      return;
    }
  }
  set_owner(ObjectKind::kMutex, which, true);
  lock.pair.step([&random] {
    if (random.one_in(3)) idle_a_little(random);
  });
  set_owner(ObjectKind::kMutex, which, false);
  CHECK_EQ(pthread_mutex_unlock(&lock.mutex), 0);
}

void use_futex_lock(Random& random) {
  const int which = random.below(kFutexLocks);
  FutexLock& lock = futex_locks[which];
  {
    const Doing doing(Op::kFutexLock, which);
    uint32_t seen = 0;
    if (!lock.word.compare_exchange_strong(seen, 1)) {
      if (seen != 2) seen = lock.word.exchange(2);
      while (seen != 0) {
        futex(&lock.word, FUTEX_WAIT_PRIVATE, 2);
        seen = lock.word.exchange(2);
      }
    }
  }
  set_owner(ObjectKind::kFutexLock, which, true);
  lock.pair.step([&random] {
    if (random.one_in(3)) idle_a_little(random);
  });
  set_owner(ObjectKind::kFutexLock, which, false);
  if (lock.word.exchange(0) == 2) futex(&lock.word, FUTEX_WAKE_PRIVATE, 1);
}

void use_rwlock(Random& random) {
  const int which = random.below(kRwLocks);
  Shared& item = shared[which];
  const bool write = random.one_in(4);
  {
    const Doing doing(write ? Op::kWriteLock : Op::kReadLock, which);
    int error;
    if (!kTsan && random.one_in(3)) {
      const timespec deadline = after_ns(random.below(2'000'000));
      error = write ? pthread_rwlock_clockwrlock(&item.lock, CLOCK_MONOTONIC, &deadline)
                    : pthread_rwlock_clockrdlock(&item.lock, CLOCK_MONOTONIC, &deadline);
      CHECK(error == 0 || error == ETIMEDOUT);
      if (error != 0) {
        ++counts.timeouts;
        return;
      }
    } else {
      error = write ? pthread_rwlock_wrlock(&item.lock) : pthread_rwlock_rdlock(&item.lock);
      CHECK_EQ(error, 0);
    }
  }
  if (write) {
    set_owner(ObjectKind::kRwLock, which, true);
    item.pair.step([&random] { idle_a_little(random); });
    set_owner(ObjectKind::kRwLock, which, false);
  } else {
    CHECK_EQ(item.pair.a, item.pair.b);
    if (random.one_in(3)) idle_a_little(random);
    CHECK_EQ(item.pair.a, item.pair.b);
  }
  CHECK_EQ(pthread_rwlock_unlock(&item.lock), 0);
}

uint64_t check_block(const uint64_t* block) {
  const uint64_t words = block[0];
  CHECK(words >= 2 && words < 512);
  for (uint64_t i = 2; i < words; ++i) CHECK_EQ(block[i], block[1] + i);
  return block[1];
}

void use_box(Random& random) {
  const int which = random.below(kBoxes);
  Box& box = boxes[which];
  const bool put = random.one_in(2);
  uint64_t* block = nullptr;
  if (put) {
    const uint64_t words = 2 + random.next() % 200;
    block = static_cast<uint64_t*>(malloc(words * sizeof(uint64_t)));
    CHECK(block != nullptr);
    block[0] = words;
    block[1] = random.next() % 1'000'000;
    for (uint64_t i = 2; i < words; ++i) block[i] = block[1] + i;
  }
  {
    const Doing doing(Op::kCondition, kMutexes + which);
    CHECK_EQ(pthread_mutex_lock(&box.mutex), 0);
    set_owner(ObjectKind::kMutex, kMutexes + which, true);
    const bool realtime = random.one_in(2);
    const clockid_t clock = realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    const timespec deadline = after_ns(random.below(3'000'000), clock);
    while (put ? box.items.size() >= 8 : box.items.empty()) {
      set_owner(ObjectKind::kMutex, kMutexes + which, false);
      const int error = realtime ? pthread_cond_timedwait(&box.changed, &box.mutex, &deadline)
                                 : pthread_cond_clockwait(&box.changed, &box.mutex, clock, &deadline);
      set_owner(ObjectKind::kMutex, kMutexes + which, true);
      CHECK(error == 0 || error == ETIMEDOUT);
      if (error == ETIMEDOUT) {
        CHECK(now_ns(clock) >= deadline.tv_sec * kSecond + deadline.tv_nsec);
        ++counts.timeouts;
        break;
      }
    }
    if (put && box.items.size() < 8) {
      box.items.push_back(block);
      box.put_sum += block[1];
      ++box.put;
      block = nullptr;
    } else if (!put && !box.items.empty()) {
      block = box.items.back();
      box.items.pop_back();
      box.taken_sum += block[1];
      ++box.taken;
    }
    if (random.one_in(2))
      pthread_cond_broadcast(&box.changed);
    else
      pthread_cond_signal(&box.changed);
    set_owner(ObjectKind::kMutex, kMutexes + which, false);
    CHECK_EQ(pthread_mutex_unlock(&box.mutex), 0);
  }
  if (block != nullptr) {
    check_block(block);
    free(block);
  }
}

void use_units(Random& random) {
  {
    const Doing doing(Op::kSemaphore);
    const bool realtime = random.one_in(2);
    const timespec deadline = after_ns(random.below(2'000'000), realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC);
    for (;;) {
      const int result =
          realtime ? sem_timedwait(&units, &deadline) : sem_clockwait(&units, CLOCK_MONOTONIC, &deadline);
      if (result == 0) break;
      CHECK(errno == ETIMEDOUT || errno == EINTR);
      if (errno == ETIMEDOUT) {
        ++counts.timeouts;
        return;
      }
    }
  }
  CHECK(++units_used <= kUnits);
  idle_a_little(random);
  --units_used;
  CHECK_EQ(sem_post(&units), 0);
}

// Writes before it reads: there are never fewer bytes than readers.
void use_pipe(Random& random) {
  const int which = random.below(kPipes);
  Pipe& pipe = pipes[which];
  const auto value = static_cast<unsigned char>(random.below(256));
  {
    const Doing doing(Op::kPipeWrite, which);
    ssize_t done;
    while ((done = write(pipe.ends[1], &value, 1)) == -1 && errno == EINTR) {
    }
    CHECK_EQ(done, 1);
    pipe.written += value;
  }
  if (random.one_in(3)) idle_a_little(random);
  unsigned char got = 0;
  const Doing doing(Op::kPipeRead, which);
  ssize_t done;
  while ((done = read(pipe.ends[0], &got, 1)) == -1 && errno == EINTR) {
  }
  CHECK_EQ(done, 1);
  pipe.read += got;
}

void wait_for_nobody(Random& random) {
  uint32_t word = 7;
  const int64_t time = random.below(500'000);
  const timespec timeout = to_timespec(time);
  const int64_t begin_ns = now_ns();
  const Doing doing(Op::kFutexWait);
  const long result = futex(&word, FUTEX_WAIT_PRIVATE, 7, &timeout);
  CHECK(result == -1 && (errno == ETIMEDOUT || errno == EINTR));
  if (errno == ETIMEDOUT) CHECK(now_ns() - begin_ns >= time);
}

void use_memory(Random& random) {
  const Doing doing(Op::kAllocating);
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (int i = 0; i < 20; ++i) {
    const size_t size = 1 + random.next() % (random.one_in(10) ? 200'000 : 2'000);
    auto* block = static_cast<unsigned char*>(malloc(size));
    CHECK(block != nullptr);
    block[0] = block[size - 1] = static_cast<unsigned char>(size);
    blocks.emplace_back(block, size);
  }
  if (random.one_in(2)) sched_yield();
  for (auto& [block, size] : blocks) {
    CHECK_EQ(block[0], static_cast<unsigned char>(size));
    CHECK_EQ(block[size - 1], static_cast<unsigned char>(size));
    free(block);
  }
}

void* child_body(void* argument) {
  const auto value = reinterpret_cast<uintptr_t>(argument);
  if (value % 3 == 0) sched_yield();
  if (value % 5 == 0) nap(50'000);
  ++counts.children_ended;
  if (value % 2 == 0) pthread_exit(reinterpret_cast<void*>(value * 3));
  return reinterpret_cast<void*>(value * 3);
}

void use_children(Random& random) {
  pthread_t children[3];
  uintptr_t values[3];
  const int number = 1 + random.below(3);
  for (int i = 0; i < number; ++i) {
    const Doing doing(Op::kCreating);
    values[i] = random.next() % 1'000'000;
    children[i] = 0;
    CHECK_EQ(pthread_create(&children[i], nullptr, child_body, reinterpret_cast<void*>(values[i])), 0);
    CHECK(children[i] != 0);
    for (int k = 0; k < i; ++k) CHECK(children[k] != children[i]);
    ++counts.children;
  }
  for (int i = 0; i < number; ++i) {
    const Doing doing(Op::kJoining);
    if (random.one_in(4)) {
      CHECK_EQ(pthread_detach(children[i]), 0);
    } else {
      CHECK_EQ(reinterpret_cast<uintptr_t>(join(children[i])), values[i] * 3);
    }
  }
}

void change_mask(Random& random) {
  sigset_t set, old;
  sigemptyset(&set);
  sigaddset(&set, kSignal);
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, &old), 0);
  CHECK_EQ(sigismember(&old, kSignal), 0);
  const int64_t before = own->handled;
  idle_a_little(random);
  if (!kTsan) CHECK_EQ(own->handled, before);
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, &old, nullptr), 0);
}

}  // namespace

void signal_someone(Random& random) {
  Worker& target = workers[random.below(options.threads)];
  const Doing doing(Op::kSignalling, static_cast<int>(&target - workers));
  if (pthread_mutex_trylock(&target.guard) != 0) return;
  if (target.alive) {
    // Counted before it is sent: it may be handled before pthread_kill returns.
    ++target.sent;
    ++counts.signals_sent;
    const int error = pthread_kill(target.thread, kSignal);
    if (error == EAGAIN) {
      --target.sent;
      --counts.signals_sent;
    } else {
      CHECK_EQ(error, 0);
    }
  }
  pthread_mutex_unlock(&target.guard);
}

void hear_out() {
  CHECK_EQ(pthread_mutex_lock(&own->guard), 0);
  own->alive = false;
  const int64_t sent = own->sent;
  CHECK_EQ(pthread_mutex_unlock(&own->guard), 0);
  for (int i = 0; !kTsan && own->handled < sent && i < 10'000; ++i) nap(kMs);
  const int64_t handled = own->handled;
  if (handled != sent && (!kTsan || handled > sent))
    FAIL("%lld signals sent, %lld handled", (long long)sent, (long long)handled);
}

// In all waits but the last glibc lets the cancellation interrupt a
// handler that interrupted the wait, and leaves that handler's signal blocked: signals must be over before.
// TSan's interceptors can be cancelled in a condition wait only.
void be_cancelled(Random& random) {
  const int kind = kTsan ? 5 * random.below(2) : random.below(6);
  const Doing doing(Op::kDoomed, kind);
  if (kind != 5) hear_out();
  own->doomed = true;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
  switch (kind) {
    case 0: {
      pthread_mutex_lock(&doom_mutex);
      struct Unlock {
        ~Unlock() { pthread_mutex_unlock(&doom_mutex); }
      } unlock;
      for (;;) pthread_cond_wait(&doom_cond, &doom_mutex);
    }
    case 1:
      for (;;) sem_wait(&doom_sem);
    case 2: {
      char byte;
      for (;;) CHECK(read(doom_pipe[0], &byte, 1) == -1 && errno == EINTR);
    }
    case 3:
      for (;;) nap(1000 * kSecond);
    case 4: {
      const timespec long_time = after_ns(1000 * kSecond);
      for (;;) sem_clockwait(&doom_sem, CLOCK_MONOTONIC, &long_time);
    }
    default:
      for (;;) {
        burn(10'000);
        pthread_testcancel();
      }
  }
}

Action some_action(Random& random) {
  static constexpr Action kActions[] = {
      use_mutex,    use_mutex,      use_futex_lock, use_futex_lock, use_rwlock,    use_box,
      use_box,      use_units,      use_pipe,       use_pipe,       use_memory,    wait_for_nobody,
      use_children, signal_someone, signal_someone, change_mask,    idle_a_little, idle_a_little};
  return kActions[random.below(static_cast<int>(std::size(kActions)))];
}

void prepare_objects() {
  for (Pipe& one : pipes) CHECK_EQ(pipe(one.ends), 0);
  CHECK_EQ(pipe(doom_pipe), 0);
  CHECK_EQ(sem_init(&units, 0, kUnits), 0);
  CHECK_EQ(sem_init(&doom_sem, 0, 0), 0);
}

void check_objects() {
  CHECK_EQ(units_used, 0);
  int value = -1;
  CHECK_EQ(sem_getvalue(&units, &value), 0);
  CHECK_EQ(value, kUnits);
  for (Lock& lock : locks) {
    CHECK_EQ(lock.pair.a, lock.pair.b);
    CHECK_EQ(pthread_mutex_trylock(&lock.mutex), 0);
  }
  for (FutexLock& lock : futex_locks) {
    CHECK_EQ(lock.pair.a, lock.pair.b);
    CHECK_EQ(lock.word, 0);
  }
  for (Box& box : boxes) {
    uint64_t left = 0;
    for (uint64_t* block : box.items) {
      left += check_block(block);
      free(block);
    }
    CHECK_EQ(box.put, box.taken + box.items.size());
    CHECK_EQ(box.put_sum, box.taken_sum + left);
  }
  for (Pipe& one : pipes) CHECK_EQ(one.written, one.read);
}

void create_worker(int index, Random& random, void* (*body)(void*)) {
  const Doing doing(Op::kCreating, index);
  Worker& worker = workers[index];
  worker.sent = 0;
  worker.handled = 0;
  worker.doomed = worker.cancelled = false;
  worker.seed = random.next();
  worker.state = State::kRunning;
  ++table->slots[index].generation;
  table->slots[index].op = Op::kStarting;
  table->slots[index].since_ns = now_ns();
  // Held while the handle is written: nobody may signal it before, though the thread may run already.
  CHECK_EQ(pthread_mutex_lock(&worker.guard), 0);
  CHECK_EQ(pthread_create(&worker.thread, nullptr, body, &worker), 0);
  CHECK_EQ(pthread_mutex_unlock(&worker.guard), 0);
  ++counts.created;
}

}  // namespace upcall::test::storm
