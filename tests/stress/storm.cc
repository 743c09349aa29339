// A crowd of threads that come and go and use everything at random: creation, join, detachment, cancellation,
// signals, every kind of lock and wait, pipes, memory. What must hold all the time is checked where it happens;
// what must balance is checked at the end, when the last thread is gone.
//
// Nothing here can wait for ever by design: a wait either has a time-out or a counterpart that surely comes. A thread
// that is to be cancelled says so first ("doomed") and the manager cancels it.
#include "storm.h"

namespace upcall::test::storm {

Options options;
std::atomic<bool> stop{false};
Counts counts;
Worker workers[Table::kSlots];
thread_local Worker* own = nullptr;

namespace {

pthread_key_t key;

void on_signal(int) {
  const int saved = errno;
  ++counts.signals_handled;
  if (own != nullptr) ++own->handled;
  errno = saved;
}

// The last thing a thread does, however it ends.
struct Leaving {
  ~Leaving() {
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    const Doing doing(Op::kEnding);
    hear_out();
    ++counts.ended;
  }
};

void* worker_body(void* argument) {
  own = static_cast<Worker*>(argument);
  int old;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
  const int index = static_cast<int>(own - workers);
  enter_slot(index);
  Random random(own->seed);
  pthread_setspecific(key, own);
  CHECK_EQ(pthread_mutex_lock(&own->guard), 0);
  own->alive = true;
  CHECK_EQ(pthread_mutex_unlock(&own->guard), 0);
  const Leaving leaving;
  const int rounds = 1 + random.below(60);
  for (int i = 0; i < rounds && !stop; ++i) some_action(random)(random);
  if (random.one_in(4) && !stop) be_cancelled(random);
  if (random.one_in(3)) pthread_exit(argument);
  return argument;
}

// The key's destructor is the last word of a thread: after it the slot may be used again (if it was detached).
void on_key_destroyed(void* value) {
  forget_poisoned_stack();
  ++counts.key_destroyed;
  Worker* worker = static_cast<Worker*>(value);
  table->slots[worker - workers].op = Op::kEnded;
  table->slots[worker - workers].object = -1;
  own_slot = nullptr;
  worker->state = State::kGone;
}

void finish(int index) {
  const Doing doing(Op::kJoiningSlot, index);
  Worker& worker = workers[index];
  void* result = join(worker.thread);
  if (worker.cancelled) {
    CHECK(result == PTHREAD_CANCELED || result == &worker);
    if (result == PTHREAD_CANCELED) ++counts.cancelled;
  } else {
    CHECK(result == &worker);
  }
  CHECK(worker.state == State::kGone);
  ++counts.joined;
  worker.state = State::kFree;
  table->slots[index].op = Op::kNone;
}

void manage_one(int index, Random& random) {
  Worker& worker = workers[index];
  switch (worker.state.load()) {
    case State::kFree:
      if (!stop) create_worker(index, random, worker_body);
      break;
    case State::kRunning:
      if (worker.doomed) {
        CHECK_EQ(pthread_cancel(worker.thread), 0);
        worker.cancelled = true;
        finish(index);
      } else if (random.one_in(20)) {
        // Joined while it runs; it may become doomed meanwhile, so not for ever.
        const Doing doing(Op::kJoiningSlot, index);
        const bool realtime = kTsan || random.one_in(2);
        const timespec deadline =
            after_ns(random.below(1'000'000), realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC);
        void* result = nullptr;
        const int error = realtime ? pthread_timedjoin_np(worker.thread, &result, &deadline)
                                   : pthread_clockjoin_np(worker.thread, &result, CLOCK_MONOTONIC, &deadline);
        CHECK(error == 0 || error == ETIMEDOUT);
        if (error == 0) {
          CHECK(result == &worker);
          CHECK(worker.state == State::kGone);
          ++counts.joined;
          worker.state = State::kFree;
          table->slots[index].op = Op::kNone;
        }
      }
      break;
    case State::kGone:
      if (random.one_in(4)) {
        CHECK_EQ(pthread_detach(worker.thread), 0);
        ++counts.detached;
        worker.state = State::kFree;
        table->slots[index].op = Op::kNone;
      } else {
        finish(index);
      }
      break;
  }
}

void prepare() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  CHECK_EQ(sigaction(kSignal, &action, nullptr), 0);
  CHECK_EQ(pthread_key_create(&key, on_key_destroyed), 0);
  prepare_objects();
}

void check_balance() {
  for (int i = 0; counts.children_ended < counts.children && i < 5000; ++i) nap(kMs);
  CHECK_EQ(counts.children_ended, counts.children);
  CHECK_EQ(counts.ended, counts.created);
  CHECK_EQ(counts.key_destroyed, counts.created);
  CHECK_EQ(counts.joined + counts.detached, counts.created);
  if (!kTsan) CHECK_EQ(counts.signals_handled, counts.signals_sent);
  check_objects();
}

}  // namespace

}  // namespace upcall::test::storm

using namespace upcall::test::storm;  // NOLINT

int main(int count, char** arguments) {
  options = begin(count, arguments);
  if (options.threads <= 0) options.threads = 48;
  CHECK(options.threads < Table::kSlots);
  enter_slot(options.threads);
  prepare();
  Random random(options.seed);
  const int64_t end = now_ns() + options.duration_ns();
  while (now_ns() < end) {
    for (int i = 0; i < 16; ++i) manage_one(random.below(options.threads), random);
    if (random.one_in(8)) {
      const Doing doing(Op::kSleeping);
      nap(random.below(300'000));
    }
    if (random.one_in(16)) signal_someone(random);
  }
  stop = true;
  for (bool busy = true; busy;) {
    busy = false;
    for (int i = 0; i < options.threads; ++i) {
      manage_one(i, random);
      busy |= workers[i].state != State::kFree;
    }
    nap(100'000);
  }
  check_balance();
  printf(
      "%lld threads (%lld joined, %lld detached, %lld cancelled), %lld children, %lld signals, %lld "
      "time-outs\n",
      (long long)counts.created, (long long)counts.joined, (long long)counts.detached,
      (long long)counts.cancelled, (long long)counts.children, (long long)counts.signals_sent,
      (long long)counts.timeouts);
}
