// Signals of the life storm: each says from whom, to whom and which of them it is, and is checked where it arrives.
#include "life.h"

#include <poll.h>
#include <sys/time.h>

namespace upcall::test::life {

Life lives[kThreads];
LifeCounts life_counts;

namespace {

thread_local uint64_t canary[4];
thread_local pthread_t own_self;
thread_local int own_tid;

constexpr int kHandled[] = {storm::kSignal, kQueued, kForAll, kJump,   kTimer,
                            SIGUSR1,        SIGUSR2, SIGALRM, SIGPROF, SIGCHLD};

constexpr uint64_t bit(int signal) { return uint64_t{1} << (signal - 1); }

uint64_t canary_of(int index, uint32_t generation) {
  return (static_cast<uint64_t>(index) << 32 | generation) * 0x9E3779B97F4A7C15u;
}

uint64_t bits_of(const sigset_t& set) {
  uint64_t bits = 0;
  for (int signal : kHandled)
    if (sigismember(&set, signal) == 1) bits |= bit(signal);
  return bits;
}

// A value: target, its generation, sender, number.
void* value_of(int target, uint32_t generation, int sender, uint32_t number) {
  return reinterpret_cast<void*>(static_cast<uint64_t>(target) << 56 |
                                 static_cast<uint64_t>(generation & 0xffff) << 40 |
                                 static_cast<uint64_t>(sender) << 32 | number);
}

void check_value(Stream* streams, const siginfo_t& info) {
  const auto value = reinterpret_cast<uint64_t>(info.si_value.sival_ptr);
  CHECK_EQ(info.si_code, SI_QUEUE);
  CHECK_EQ(info.si_pid, getpid());
  CHECK_EQ(value >> 56, own_index());
  CHECK_EQ(value >> 40 & 0xffff, own_life().generation & 0xffff);
  const auto sender = static_cast<int>(value >> 32 & 0xff);
  CHECK(sender <= kThreads);
  Stream& stream = streams[sender];
  CHECK_EQ(static_cast<uint32_t>(value), stream.seen + 1);
  ++stream.seen;
}

void check_identity() {
  if (own == nullptr) return;
  const uint64_t expected = canary_of(own_index(), own_life().generation);
  for (uint64_t word : canary) CHECK_EQ(word, expected);
  CHECK(pthread_equal(own_self, pthread_self()));
  CHECK_EQ(gettid(), own_tid);
}

// Floating point, where a handler's registers could get into.
double some_sum(int terms) {
  double sum = 0;
  for (int i = 1; i <= terms; ++i) sum += 1.0 / i;
  return sum;
}

void check_in_handler(int signal) {
  check_identity();
  const uint64_t now = mask_now();
  CHECK((now & bit(signal)) != 0);
  if (own == nullptr) return;
  const Life& life = own_life();
  if (life.mask_changes) return;
  const uint64_t mask = life.mask;
  if ((mask & bit(signal)) != 0)
    FAIL("a handler of signal %d runs, which slot %d blocks", signal, own_index());
  CHECK_EQ(now & mask, mask);
}

void on_standard(int signal) {
  switch (signal) {
    case SIGUSR1:
      ++life_counts.plain;
      if (own != nullptr) own_life().plain_seen = own_life().plain_sent.load();
      break;
    case SIGUSR2: {
      const uint32_t sent = life_counts.plain_all_sent;
      uint32_t seen = life_counts.plain_all_seen;
      while (static_cast<int32_t>(sent - seen) > 0 &&
             !life_counts.plain_all_seen.compare_exchange_weak(seen, sent)) {
      }
      break;
    }
    case SIGCHLD:
      ++life_counts.child_signals;
      break;
    case storm::kSignal:
      ++storm::counts.signals_handled;
      if (own != nullptr) ++own->handled;
      break;
    default:
      ++life_counts.ticks;
  }
}

void count_for_all(const siginfo_t& info) {
  CHECK_EQ(info.si_code, SI_QUEUE);
  life_counts.for_all_seen_sum += reinterpret_cast<uint64_t>(info.si_value.sival_ptr);
  ++life_counts.for_all_seen;
}

void on_signal(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  CHECK_EQ(info->si_signo, signal);
  check_in_handler(signal);
  const double sum = some_sum(20);
  if (signal == kQueued) {
    CHECK(own != nullptr);
    ++life_counts.queued;
    check_value(own_life().queued, *info);
  } else if (signal == kForAll) {
    count_for_all(*info);
  } else if (signal == kJump) {
    CHECK(own != nullptr);
    if (own_life().jump_ready.exchange(false)) {
      errno = saved;
      siglongjmp(own_life().jump, 1);
    }
  } else {
    on_standard(signal);
  }
  CHECK(sum == some_sum(20));
  errno = saved;
}

void set_mask(uint64_t bits) {
  sigset_t set;
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &set), 0);
  for (int signal : kHandled) {
    if ((bits & bit(signal)) != 0)
      sigaddset(&set, signal);
    else
      sigdelset(&set, signal);
  }
  Life& life = own_life();
  life.mask_changes = true;
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, &set, nullptr), 0);
  life.mask = bits;
  life.mask_changes = false;
  CHECK_EQ(mask_now(), bits);
}

// Sends under the target's guard, if it lives. `send` answers an error number; EAGAIN: the user's queue is full.
template <class F>
void send_to(Worker& target, F send) {
  const Doing doing(Op::kSignalling, static_cast<int>(&target - workers));
  if (pthread_mutex_trylock(&target.guard) != 0) return;
  if (target.alive) {
    const int error = send(lives[&target - workers]);
    CHECK(error == 0 || error == EAGAIN);
  }
  CHECK_EQ(pthread_mutex_unlock(&target.guard), 0);
}

Worker& anyone(Random& random) { return workers[random.below(kThreads)]; }

void send_value(Worker& target, int signal) {
  bool sent = false;
  send_to(target, [&](Life& life) {
    const int sender = own_index(), index = static_cast<int>(&target - workers);
    Stream& stream = (signal == kQueued ? life.queued : life.waited)[sender];
    const uint32_t number = ++stream.sent;
    sigval value;
    value.sival_ptr = value_of(index, life.generation, sender, number);
    const int error = pthread_sigqueue(target.thread, signal, value);
    if (error != 0) --stream.sent;
    sent = error == 0;
    return error;
  });
  // To oneself and not blocked: it has been handled before the call returns.
  if (sent && &target == own && signal == kQueued && (own_life().mask & bit(kQueued)) == 0) {
    const Stream& stream = own_life().queued[own_index()];
    CHECK_EQ(stream.seen, stream.sent);
  }
}

void queue_one(Random& random) { send_value(anyone(random), kQueued); }

void send_waited(Random& random) { send_value(anyone(random), kWaited); }

void send_plain(Random& random) {
  Worker& target = anyone(random);
  send_to(target, [&](Life& life) {
    ++life.plain_sent;
    return pthread_kill(target.thread, SIGUSR1);
  });
}

void send_to_all(Random& random) {
  const Doing doing(Op::kSignalling);
  if (random.one_in(2)) {
    ++life_counts.plain_all_sent;
    CHECK_EQ(kill(getpid(), SIGUSR2), 0);
    return;
  }
  // Not more than the queue holds.
  if (life_counts.for_all_sent - life_counts.for_all_seen > 200) return;
  sigval value;
  value.sival_ptr = reinterpret_cast<void*>(random.next() >> 20);
  ++life_counts.for_all_sent;
  life_counts.for_all_sent_sum += reinterpret_cast<uint64_t>(value.sival_ptr);
  if (sigqueue(getpid(), kForAll, value) != 0) {
    CHECK_EQ(errno, EAGAIN);
    --life_counts.for_all_sent;
    life_counts.for_all_sent_sum -= reinterpret_cast<uint64_t>(value.sival_ptr);
  }
}

// True: one was taken.
bool take_waited(const sigset_t& set, int64_t ns) {
  const timespec timeout = to_timespec(ns);
  siginfo_t info;
  const int signal = sigtimedwait(&set, &info, &timeout);
  if (signal == -1) {
    CHECK(errno == EAGAIN || errno == EINTR);
    return false;
  }
  CHECK_EQ(info.si_signo, signal);
  if (signal == kForAll) {
    count_for_all(info);
  } else {
    CHECK_EQ(signal, kWaited);
    ++life_counts.waited;
    check_value(own_life().waited, info);
  }
  return true;
}

void wait_for_signals(Random& random) {
  const Doing doing(Op::kSigwait);
  sigset_t set = signal_set({kWaited});
  if ((own_life().mask & bit(kForAll)) != 0) sigaddset(&set, kForAll);
  if (random.one_in(3)) send_value(*own, kWaited);
  for (int i = random.below(4); i >= 0; --i)
    if (!take_waited(set, random.below(300'000)) && random.one_in(2)) break;
}

void change_masks(Random& random) {
  const Doing doing(Op::kMasking);
  uint64_t bits = 0;
  if (!random.one_in(3)) {
    for (int signal : kHandled)
      if (signal != storm::kSignal && random.one_in(4)) bits |= bit(signal);
  }
  set_mask(bits);
}

// A signal that is blocked and pending, and let in by sigsuspend alone.
void suspend(Random& random) {
  const uint64_t before = own_life().mask;
  set_mask(before | bit(kQueued));
  send_value(*own, kQueued);
  const Stream& stream = own_life().queued[own_index()];
  if (stream.sent != stream.seen) {
    const Doing doing(Op::kSuspended);
    sigset_t open;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &open), 0);
    if (random.one_in(2)) sigemptyset(&open), sigaddset(&open, kWaited);
    sigdelset(&open, kQueued);
    own_life().mask_changes = true;
    // Another signal may come first.
    while (stream.sent != stream.seen) CHECK_ERRNO(sigsuspend(&open), EINTR);
    own_life().mask_changes = false;
    CHECK_EQ(mask_now(), before | bit(kQueued));
    ++life_counts.suspended;
  }
  set_mask(before);
}

void wait_for_jump(int kind) {
  pollfd nothing = {storm::doom_pipe[0], POLLIN, 0};
  char byte;
  sigset_t open;
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &open), 0);
  for (;;) {
    switch (kind) {
      case 0:
        burn(100'000);
        break;
      case 1: {
        const timespec time = to_timespec(kSecond);
        clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
        break;
      }
      case 2:
        CHECK(read(storm::doom_pipe[0], &byte, 1) == -1);
        break;
      case 3:
        CHECK(poll(&nothing, 1, 1000) <= 0);
        break;
      case 4:
        sigsuspend(&open);
        break;
      case 5:
        pause();
        break;
      default:
        sched_yield();
    }
  }
}

bool make_timer(Life& life, int signal) {
  if (!life.has_timer) {
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event._sigev_un._tid = gettid();
    event.sigev_signo = signal;
    if (timer_create(CLOCK_MONOTONIC, &event, &life.timer) != 0) {
      CHECK_EQ(errno, EAGAIN);
      return false;
    }
    life.has_timer = true;
  }
  return true;
}

void drop_timer(Life& life) {
  if (!life.has_timer) return;
  CHECK_EQ(timer_delete(life.timer), 0);
  life.has_timer = false;
}

void arm(Life& life, int64_t first_ns, int64_t then_ns) {
  const itimerspec times = {to_timespec(then_ns), to_timespec(first_ns)};
  CHECK_EQ(timer_settime(life.timer, 0, &times, nullptr), 0);
}

void jump_out(Random& random) {
  Life& life = own_life();
  const uint64_t before = life.mask;
  set_mask(before & ~bit(kJump));
  drop_timer(life);
  const int kind = random.below(7);
  const int64_t time = 10'000 + random.below(400'000);
  if (make_timer(life, kJump)) {
    const Doing doing(Op::kJumping, kind);
    if (sigsetjmp(life.jump, 1) == 0) {
      life.jump_ready = true;
      arm(life, time, 0);
      wait_for_jump(kind);
    }
    CHECK(!life.jump_ready);
    // glibc 2.36 is in this mode while it waits in a call, and is left so.
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, nullptr);
    ++life_counts.jumps;
  }
  drop_timer(life);
  check_life();
  set_mask(before);
}

// Its own timer, every so often, until it is taken for something else.
void have_timer(Random& random) {
  Life& life = own_life();
  drop_timer(life);
  if (random.one_in(3) || !make_timer(life, kTimer)) return;
  const int64_t time = random.one_in(2) ? 50'000 : 50'000 + random.below(2'000'000);
  arm(life, time, time);
}

void on_cleanup(void* counted) {
  ++life_counts.popped;
  ++*static_cast<std::atomic<int64_t>*>(counted);
}

// Alone in its function: it may be left at any instruction, and where nothing has to be destroyed.
__attribute__((noinline)) void compute_until_cancelled() {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  for (;;) __asm__ volatile("");
}

void wait_for_cancel(Random& random) {
  const int kind = random.below(6);
  if (kind == 0) {
    storm::be_cancelled(random);
    return;
  }
  const Doing doing(Op::kDoomed, 100 + kind);
  own->doomed = true;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
  const sigset_t set = signal_set({kWaited});
  siginfo_t info;
  for (;;) {
    switch (kind) {
      case 1:
        compute_until_cancelled();
        break;
      case 2:
        CHECK_EQ(sigwaitinfo(&set, &info), -1);
        break;
      case 3:
        CHECK(poll(nullptr, 0, 1000) <= 0);
        break;
      case 4:
        pause();
        break;
      default:
        sched_yield();
        pthread_testcancel();
    }
  }
}

}  // namespace

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : kHandled) sigaddset(&set, signal);
  return set;
}

uint64_t mask_now() {
  sigset_t set;
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &set), 0);
  return bits_of(set);
}

void install_handlers() {
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigaddset(&action.sa_mask, kJump);  // it would leave the other handler as well
  for (int signal : kHandled) CHECK_EQ(sigaction(signal, &action, nullptr), 0);
  const sigset_t waited = signal_set({kWaited});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &waited, nullptr), 0);
}

void begin_life(Worker* worker, uint32_t generation) {
  const auto index = static_cast<int>(worker - workers);
  Life& life = lives[index];
  for (Stream* streams : {life.queued, life.waited})
    for (int i = 0; i <= kThreads; ++i) streams[i].sent = 0, streams[i].seen = 0;
  life.plain_sent = life.plain_seen = 0;
  life.generation = generation;
  life.mask = mask_now();
  life.mask_changes = life.jump_ready = false;
  life.has_timer = false;
  for (uint64_t& word : canary) word = canary_of(index, generation);
  own_self = pthread_self();
  own_tid = gettid();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  own = worker;  // last: handlers look at it
}

void check_life() {
  check_identity();
  CHECK_EQ(mask_now(), own_life().mask);
}

void end_life() { drop_timer(own_life()); }

void block_all() { set_mask(bits_of(handled_signals())); }

void hear_all() {
  set_mask(0);
  end_life();
  storm::hear_out();
  const Doing doing(Op::kEnding);
  Life& life = own_life();
  const sigset_t waited = signal_set({kWaited});
  auto complete = [](const Stream* streams) {
    for (int i = 0; i <= kThreads; ++i)
      if (streams[i].sent != streams[i].seen) return false;
    return true;
  };
  for (int i = 0; !complete(life.waited) && i < 10'000; ++i) take_waited(waited, kMs);
  for (int i = 0; !(complete(life.queued) && life.plain_seen == life.plain_sent) && i < 10'000; ++i) nap(kMs);
  for (int i = 0; i <= kThreads; ++i) {
    CHECK_EQ(life.queued[i].seen, life.queued[i].sent);
    CHECK_EQ(life.waited[i].seen, life.waited[i].sent);
  }
  CHECK_EQ(life.plain_seen, life.plain_sent);
}

void set_ticks(Random& random, int microseconds, bool off) {
  for (int which : {ITIMER_REAL, ITIMER_PROF}) {
    int time = microseconds;
    if (time == 0) time = random.one_in(2) ? 0 : random.one_in(2) ? 50 : 50 + random.below(3000);
    if (off) time = 0;
    const itimerval value = {{0, time}, {0, time}};
    CHECK_EQ(setitimer(static_cast<__itimer_which>(which), &value, nullptr), 0);
  }
}

void be_cancelled_deep(Random& random, int depth) {
  std::atomic<int64_t> here{0};
  ++life_counts.pushed;
  pthread_cleanup_push(on_cleanup, &here);
  if (depth > 0)
    be_cancelled_deep(random, depth - 1);
  else
    wait_for_cancel(random);
  pthread_cleanup_pop(1);
}

storm::Action signal_action(Random& random) {
  static constexpr storm::Action kActions[] = {queue_one,    queue_one,   send_waited,      send_waited,
                                               send_plain,   send_to_all, wait_for_signals, change_masks,
                                               change_masks, suspend,     jump_out,         have_timer};
  return kActions[random.below(static_cast<int>(std::size(kActions)))];
}

}  // namespace upcall::test::life
