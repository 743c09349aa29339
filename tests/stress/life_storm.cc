// The whole life of threads and processes at once: threads that come and go, are joined, detached and cancelled (deferred
// and at any instruction), send each other signals of every kind, change their masks, wait for signals, jump out of
// handlers, fork, spawn and exec, between all that the storm does (storm_actions.cc), while timers of the process and of
// threads interrupt them.
//
//   life_storm [--seconds S] [--seed N] [--table FILE] [--ticks MICROSECONDS]
//
// Checked: real-time signals arrive as often as they were sent, at whom they were sent to, in order for each sender, and
// never while blocked; after a standard one its handler runs at least once; no cleanup handler is lost; a child ends as
// it was told to, and has found the mask, pending signals and dispositions it should; a thread's TLS, errno, mask and
// floating point are its own. --ticks: interval timers of that period all the time, instead of some at random.
#include "life.h"

#include <sys/resource.h>

namespace upcall::test {

namespace storm {
Options options;
std::atomic<bool> stop{false};
Counts counts;
Worker workers[Table::kSlots];
thread_local Worker* own = nullptr;
}  // namespace storm

namespace life {

namespace {

using storm::counts;
using storm::State;
using storm::stop;

std::atomic<uint32_t> generations{0};
int ticks_us = 0;

// The last thing a thread does, however it ends.
struct Leaving {
  ~Leaving() {
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old);
    {
      const Doing doing(Op::kEnding);
      check_life();
      hear_all();
    }
    ++counts.ended;
    // Signals of the process may still interrupt what is left of the thread, while the slot is another's.
    Worker* worker = own;
    own = nullptr;
    own_slot = nullptr;
    worker->state = State::kGone;
  }
};

void* worker_body(void* argument) {
  auto* worker = static_cast<Worker*>(argument);
  int old;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
  enter_slot(static_cast<int>(worker - workers));
  Random random(worker->seed);
  begin_life(worker, ++generations);
  CHECK_EQ(pthread_mutex_lock(&own->guard), 0);
  own->alive = true;
  CHECK_EQ(pthread_mutex_unlock(&own->guard), 0);
  const Leaving leaving;
  const int rounds = 1 + random.below(80);
  for (int i = 0; i < rounds && !stop; ++i) {
    if (random.one_in(40))
      use_process(random);
    else if (random.one_in(2))
      signal_action(random)(random);
    else
      storm::some_action(random)(random);
    if (random.one_in(4)) check_life();
  }
  if (random.one_in(4) && !stop) {
    // Cancellation may take a handler's place where it interrupts a wait: all has come before.
    hear_all();
    block_all();
    be_cancelled_deep(random, random.below(5));
  }
  if (random.one_in(3)) pthread_exit(argument);
  return argument;
}

void set_free(int index) {
  workers[index].state = State::kFree;
  table->slots[index].op = Op::kNone;
}

void finish(int index) {
  const Doing doing(Op::kJoiningSlot, index);
  Worker& worker = workers[index];
  void* result = join(worker.thread);
  CHECK(result == &worker || (worker.cancelled && result == PTHREAD_CANCELED));
  if (result == PTHREAD_CANCELED) ++counts.cancelled;
  CHECK(worker.state == State::kGone);
  ++counts.joined;
  set_free(index);
}

void manage_one(int index, Random& random) {
  Worker& worker = workers[index];
  const State state = worker.state;
  if (state == State::kFree) {
    if (!stop) storm::create_worker(index, random, worker_body);
  } else if (state == State::kRunning && worker.doomed) {
    CHECK_EQ(pthread_cancel(worker.thread), 0);
    worker.cancelled = true;
    finish(index);
  } else if (state == State::kRunning && random.one_in(50)) {
    const Doing doing(Op::kJoiningSlot, index);
    const timespec deadline = after_ns(random.below(1'000'000));
    void* result = nullptr;
    const int error = pthread_clockjoin_np(worker.thread, &result, CLOCK_MONOTONIC, &deadline);
    CHECK(error == 0 || error == ETIMEDOUT);
    if (error != 0) return;
    CHECK(result == &worker);
    ++counts.joined;
    set_free(index);
  } else if (state == State::kGone) {
    if (random.one_in(4)) {
      CHECK_EQ(pthread_detach(worker.thread), 0);
      ++counts.detached;
      set_free(index);
    } else {
      finish(index);
    }
  }
}

void check_balance() {
  auto settled = [] {
    return counts.children_ended == counts.children && life_counts.for_all_seen == life_counts.for_all_sent &&
           life_counts.plain_all_seen == life_counts.plain_all_sent &&
           counts.signals_handled == counts.signals_sent;
  };
  for (int i = 0; !settled() && i < 10'000; ++i) nap(kMs);
  CHECK_EQ(counts.children_ended, counts.children);
  CHECK_EQ(counts.ended, counts.created);
  CHECK_EQ(counts.joined + counts.detached, counts.created);
  CHECK_EQ(counts.signals_handled, counts.signals_sent);
  CHECK_EQ(life_counts.for_all_seen, life_counts.for_all_sent);
  CHECK_EQ(life_counts.for_all_seen_sum, life_counts.for_all_sent_sum);
  CHECK_EQ(life_counts.plain_all_seen, life_counts.plain_all_sent);
  CHECK_EQ(life_counts.popped, life_counts.pushed);
  if (life_counts.forks + life_counts.spawns > 0) CHECK(life_counts.child_signals > 0);
  CHECK_ERRNO(waitpid(-1, nullptr, WNOHANG), ECHILD);
  storm::check_objects();
}

// --ticks and its value are ours; the rest is for begin().
int take_ticks(int count, char** arguments) {
  for (int i = 1; i + 1 < count; ++i) {
    if (strcmp(arguments[i], "--ticks") != 0) continue;
    ticks_us = atoi(arguments[i + 1]);
    for (int k = i; k + 2 <= count; ++k) arguments[k] = arguments[k + 2];
    return count - 2;
  }
  return count;
}

void report() {
  const LifeCounts& l = life_counts;
  printf(
      "%lld threads (%lld joined, %lld detached, %lld cancelled), %lld forked, %lld spawned, signals: %lld "
      "and %lld by "
      "value, %lld and %lld plain, %llu to the process, %lld ticks, %lld jumps\n",
      (long long)counts.created, (long long)counts.joined, (long long)counts.detached,
      (long long)counts.cancelled, (long long)l.forks, (long long)l.spawns, (long long)l.queued,
      (long long)l.waited, (long long)counts.signals_sent, (long long)l.plain,
      (unsigned long long)l.for_all_sent, (long long)l.ticks, (long long)l.jumps);
}

}  // namespace

}  // namespace life

}  // namespace upcall::test

using namespace upcall::test::life;  // NOLINT

int main(int count, char** arguments) {
  be_spawned(count, arguments);
  storm::options = begin(take_ticks(count, arguments), arguments);
  storm::options.threads = kThreads;
  const rlimit no_core = {0, 0};
  CHECK_EQ(setrlimit(RLIMIT_CORE, &no_core), 0);
  enter_slot(kThreads);
  install_handlers();
  storm::prepare_objects();
  Random random(storm::options.seed);
  const int64_t end = now_ns() + storm::options.duration_ns();
  while (now_ns() < end) {
    for (int i = 0; i < 16; ++i) manage_one(random.below(kThreads), random);
    if (random.one_in(8)) {
      const Doing doing(Op::kSleeping);
      nap(random.below(300'000));
    }
    if (random.one_in(16)) storm::signal_someone(random);
    if (random.one_in(200)) set_ticks(random, ticks_us, false);
  }
  stop = true;
  set_ticks(random, 0, true);
  for (bool busy = true; busy;) {
    busy = false;
    for (int i = 0; i < kThreads; ++i) {
      manage_one(i, random);
      busy |= workers[i].state != State::kFree;
    }
    nap(100'000);
  }
  check_balance();
  report();
}
