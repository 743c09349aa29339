// Many threads that wait by the clock in every way there is, while others compute and signals fly: never early,
// never forgotten, EINTR only where a handler ran, and then with an honest remainder.
#include <poll.h>
#include <semaphore.h>

#include "stress.h"

namespace {

constexpr int64_t kMostLate = 20 * kSecond;
constexpr int kSignal = 41;

std::atomic<bool> stop{false};
std::atomic<int64_t> waits{0}, interrupted{0}, latest{0};
thread_local volatile int handled = 0;

void on_signal(int) { handled = handled + 1; }

void note_late(int64_t late) {
  if (late < 0 || late >= kMostLate) FAIL("woke %lld us after its time", static_cast<long long>(late / 1000));
  int64_t old = latest;
  while (late > old && !latest.compare_exchange_weak(old, late)) {
  }
  ++waits;
}

const clockid_t kClocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_TAI};

void sleep_relative(Random& random, int64_t time) {
  const clockid_t clock = kClocks[random.below(4)];
  const Doing doing(Op::kSleeping, 1);
  const int64_t due = now_ns() + time;
  timespec left = to_timespec(time);
  for (;;) {
    const int before = handled;
    const timespec wanted = left;
    const int error = clock_nanosleep(clock, 0, &wanted, &left);
    if (error == 0) break;
    CHECK_EQ(error, EINTR);
    CHECK(kTsan || handled > before);
    // Linux counts its timer slack (50 us) into the remainder.
    CHECK(left.tv_sec * kSecond + left.tv_nsec <= wanted.tv_sec * kSecond + wanted.tv_nsec + kMs);
    ++interrupted;
  }
  note_late(now_ns() - due);
}

void sleep_absolute(Random& random, int64_t time) {
  const clockid_t clock = kClocks[random.below(4)];
  const Doing doing(Op::kSleeping, 2);
  const int64_t due = now_ns(clock) + time;
  const timespec deadline = to_timespec(due);
  for (;;) {
    const int before = handled;
    const int error = clock_nanosleep(clock, TIMER_ABSTIME, &deadline, nullptr);
    if (error == 0) break;
    CHECK_EQ(error, EINTR);
    CHECK(kTsan || handled > before);
    ++interrupted;
  }
  note_late(now_ns(clock) - due);
}

void wait_condition(Random& random, int64_t time) {
  const clockid_t clock = kClocks[random.below(2)];
  const Doing doing(Op::kCondition);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  const int64_t due = now_ns(clock) + time;
  const timespec deadline = to_timespec(due);
  int error = 0;
  while (error == 0) error = pthread_cond_clockwait(&cond, &mutex, clock, &deadline);
  CHECK_EQ(error, ETIMEDOUT);
  note_late(now_ns(clock) - due);
  pthread_mutex_unlock(&mutex);
  pthread_cond_destroy(&cond);
  pthread_mutex_destroy(&mutex);
}

void wait_semaphore(Random& random, int64_t time) {
  const clockid_t clock = kClocks[random.below(2)];
  const Doing doing(Op::kSemaphore);
  sem_t never;
  sem_init(&never, 0, 0);
  const int64_t due = now_ns(clock) + time;
  const timespec deadline = to_timespec(due);
  for (;;) {
    const int before = handled;
    CHECK_EQ(sem_clockwait(&never, clock, &deadline), -1);
    if (errno == ETIMEDOUT) break;
    CHECK_EQ(errno, EINTR);
    CHECK(kTsan || handled > before);
    ++interrupted;
  }
  note_late(now_ns(clock) - due);
  sem_destroy(&never);
}

void wait_futex(int64_t time) {
  const Doing doing(Op::kFutexWait);
  uint32_t word = 0;
  const int64_t due = now_ns() + time;
  const timespec deadline = to_timespec(due);
  for (;;) {
    const int before = handled;
    CHECK_EQ(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &deadline, nullptr, FUTEX_BITSET_MATCH_ANY), -1);
    if (errno == ETIMEDOUT) break;
    CHECK_EQ(errno, EINTR);
    CHECK(kTsan || handled > before);
    ++interrupted;
  }
  note_late(now_ns() - due);
}

void wait_poll(int64_t time) {
  const Doing doing(Op::kSleeping, 3);
  const int milliseconds = static_cast<int>(time / kMs) + 1;
  const int before = handled;
  const int64_t due = now_ns() + milliseconds * kMs;
  const int result = poll(nullptr, 0, milliseconds);
  if (result == 0) {
    note_late(now_ns() - due);
  } else {
    CHECK_EQ(errno, EINTR);
    CHECK(kTsan || handled > before);
    ++interrupted;
  }
}

void body(int index, uint64_t seed) {
  enter_slot(index);
  Random random(seed, static_cast<uint64_t>(index));
  while (!stop) {
    const int64_t time = random.one_in(20) ? random.below(60'000'000) : random.below(3'000'000);
    switch (random.below(7)) {
      case 0:
        sleep_relative(random, time);
        break;
      case 1:
        sleep_absolute(random, time);
        break;
      case 2:
        wait_condition(random, time);
        break;
      case 3:
        wait_semaphore(random, time);
        break;
      case 4:
        wait_futex(time);
        break;
      case 5:
        wait_poll(time);
        break;
      default:
        burn(random.below(500'000));
    }
  }
  table->slots[index].op = Op::kEnded;
}

}  // namespace

int main(int count, char** arguments) {
  Options options = begin(count, arguments);
  if (options.threads <= 0) options.threads = 100;
  CHECK(options.threads < Table::kSlots - 1);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  CHECK_EQ(sigaction(kSignal, &action, nullptr), 0);
  std::vector<pthread_t> threads;
  for (int i = 0; i < options.threads; ++i)
    threads.push_back(start([i, &options] { body(i, options.seed); }));
  enter_slot(options.threads);
  Random random(options.seed, 1'000'000);
  const int64_t end = now_ns() + options.duration_ns();
  while (now_ns() < end) {
    nap(random.below(500'000));
    CHECK_EQ(pthread_kill(threads[static_cast<size_t>(random.below(options.threads))], kSignal), 0);
  }
  stop = true;
  {
    const Doing doing(Op::kJoining);
    join_all(threads);
  }
  CHECK(waits > 0);
  printf("%lld waits, %lld interrupted, the latest %.3f ms after its time\n", (long long)waits,
         (long long)interrupted, static_cast<double>(latest) / 1e6);
}
