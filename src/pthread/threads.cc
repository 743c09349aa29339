// pthread_create, pthread_join and their kin, called by symbol. This side runs on the program's stack, as glibc's
// own functions do; a cancelled thread unwinds through it. Within this library's code a thread is not preempted and
// takes no signal, so activation::self() may be used; but its processor may be taken from it (detach.cc): what is the
// processor's is touched in handlers only.
#include <errno.h>
#include <threads.h>
#include <time.h>

#include "pthread/hull.h"
#include "pthread/real.h"

extern "C" {
alignas(16) __thread unsigned char upcall_hull[sizeof(upcall::pthread_abi::Hull)]
    __attribute__((tls_model("initial-exec"), visibility("hidden")));  // NOLINT
}

namespace upcall::pthread_abi {

namespace {

// A thread whose stack may have been used deeply exits, and gives it back whole. The first function of a thread is
// judged by its time, as in sys_madvise; later ones by a line of the stack one to two pages below the frames that every
// thread has, still as it was set. (Setting it for the first would cost threads that are not reused a page.)
constexpr uint64_t short_life_cycles = 60'000;
constexpr uint64_t mark_words = 8;
constexpr uint64_t mark_value = 0x7570'6361'6c6c'2121;

uint64_t* stack_mark() {
  auto frame = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  return reinterpret_cast<uint64_t*>((frame & ~4095ul) - 4096);
}

__attribute__((noinline)) void set_stack_mark(uint64_t* mark) {
  for (uint64_t i = 0; i < mark_words; ++i) *const_cast<volatile uint64_t*>(mark + i) = mark_value;
}

bool stack_mark_stands(const uint64_t* mark) {
  for (uint64_t i = 0; i < mark_words; ++i)
    if (*const_cast<const volatile uint64_t*>(mark + i) != mark_value) return false;
  return true;
}

// The process ends, and this thread with it through glibc. Joined already: glibc must not free what others may still
// look at, so nobody joins it. Otherwise the real pthread_join finds the result.
void* leave_with(Hull* h) {
  auto w = static_cast<uint64_t>(Phase::finished);
  // acq_rel: against join_finished; the winner decides who knows of the end
  h->word.compare_exchange_strong(w, static_cast<uint64_t>(Phase::exiting), acq_rel, relaxed);
  return h->result;
}

// What every thread of ours runs, one function after the other. Not noexcept: pthread_exit unwinds through it.
void* run_hull(void*) {
  Hull* h = own_hull();
  uint64_t* mark = stack_mark();
  uint64_t born = arch::tsc();
  for (bool first = true;; first = false) {
    void* result = h->start(h->argument);
    bool shallow = first ? arch::tsc() - born < short_life_cycles : stack_mark_stands(mark);
    if (!shallow || !leaves_no_trace(*h)) return result;
    h->result = result;
    long r;
    do r = upcall_native_call(end_of_job, reinterpret_cast<uint64_t>(h), 0, 0);
    while (r == look);
    while (r == -EINTR) r = upcall_native_call(park_again, 0, 0, 0);
    switch (r) {
      case job:
        break;
      case leave:
        return leave_with(h);
      case retire:
        real().detach(h->id);
        return nullptr;
      default:
        return result;
    }
    if (first) set_stack_mark(mark);
    make_fresh();
  }
}

Thread* own_thread() { return activation::self()->current; }

enum class Outcome { joined, ended_otherwise, error };

bool join_now(Hull* h, void** result) {
  if (upcall_native_call(join_finished, reinterpret_cast<uint64_t>(h), 0, 0) != joined) return false;
  if (result) *result = activation::self()->current->join_result;
  return true;
}

// The wait is over and something else comes next: nobody is to wake us for it.
void withdraw(Hull* h, const Thread* t) {
  uint64_t w = h->word.load(relaxed);
  while (phase_of(w) == Phase::running && joiner_of(w) == t) {
    // relaxed: only takes away a hint
    if (h->word.compare_exchange_weak(w, w & word_flags, relaxed, relaxed)) return;
  }
}

struct Join {
  Hull* hull;
  Thread* thread;
};

// A handler that has interrupted the join ends the thread: the other one can still be joined.
void abandon_join(void* argument) {
  auto* j = static_cast<Join*>(argument);
  j->thread->joining.store(nullptr, relaxed);
  withdraw(j->hull, j->thread);
}

long wait_natively(Hull* h, Thread* t, uint64_t deadline, bool minding_cancel) {
  Join unwound = {h, t};
  _pthread_cleanup_buffer buffer;
  upcall::pthread::real().cleanup_push(&buffer, abandon_join, &unwound);
  long r = upcall_native_call(wait_for_end, reinterpret_cast<uint64_t>(h), deadline, minding_cancel);
  t->joining.store(nullptr, relaxed);
  upcall::pthread::real().cleanup_pop(&buffer, 0);
  return r;
}

// Waits until `deadline`. error: *error is set. ended_otherwise: glibc knows, or will know, of the end.
Outcome join_hull(Hull* h, void** result, uint64_t deadline, int* error) {
  bool minding_cancel = true;
  Thread* t = own_thread();
  auto fail = [error](int value) {
    *error = value;
    return Outcome::error;
  };
  for (;;) {
    Phase phase = phase_of(h->word.load(relaxed));
    if (phase == Phase::spare) return fail(ESRCH);
    if (phase != Phase::running && phase != Phase::finished) return Outcome::ended_otherwise;
    if (h == own_hull() || h->thread.load(relaxed)->joining.load(relaxed) == own_hull()) return fail(EDEADLK);
    long r = wait_natively(h, t, deadline, minding_cancel);
    if (r == joined) {
      if (result) *result = t->join_result;
      return Outcome::joined;
    }
    if (r == 0) continue;
    withdraw(h, t);
    if (r == -EINTR) {
      if (!t->cancelled.load(relaxed) || !minding_cancel) continue;
      pthread_testcancel();
      minding_cancel = false;  // it has come back: cancellation is disabled
      continue;
    }
    if (phase_of(h->word.load(relaxed)) == Phase::finished) continue;
    return fail(static_cast<int>(-r));
  }
}

// The deadline of a timed join. Negative: the errno value to answer.
int read_deadline(clockid_t clock, const timespec* at, uint64_t* deadline) {
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return EINVAL;
  *deadline = sched::never;
  if (!at) return 0;
  if (at->tv_nsec < 0 || at->tv_nsec >= 1'000'000'000) return EINVAL;
  if (at->tv_sec < 0) return ETIMEDOUT;
  constexpr int64_t for_ever = 4'000'000'000;  // 126 years
  if (at->tv_sec > for_ever) return 0;
  *deadline = linux_abi::to_monotonic(
      clock, static_cast<uint64_t>(at->tv_sec) * 1'000'000'000u + static_cast<uint64_t>(at->tv_nsec));
  return 0;
}

// Is the thread one that ends in our way, as far as it is known?
bool ours(Hull* h) {
  if (!active()) return false;
  uint64_t w = h->word.load(relaxed);
  Phase phase = phase_of(w);
  return phase != Phase::none && phase != Phase::exiting && !(w & word_keep_out);
}

// A running hull's thread is to exit through glibc. False: it has finished already.
bool keep_out(Hull* h) {
  uint64_t w = h->word.load(relaxed);
  for (;;) {
    if (phase_of(w) == Phase::none || phase_of(w) == Phase::exiting) return true;
    if (phase_of(w) != Phase::running) return false;
    // acq_rel: against end_of_job's exchange; one of the two comes first.
    if (h->word.compare_exchange_weak(w, w | word_keep_out, acq_rel, relaxed)) return true;
  }
}

// Does somebody wait natively for the end of `h`'s thread, or will in a moment?
bool is_awaited(const Hull* h) {
  uint64_t w = h->word.load(relaxed);
  const Thread* j = phase_of(w) == Phase::running ? joiner_of(w) : nullptr;
  return j && j->joining.load(relaxed) == h;
}

int try_join(pthread_t p, void** result) {
  Hull* h = hull_of(p);
  if (!ours(h)) return real().tryjoin(p, result);
  if (phase_of(h->word.load(relaxed)) == Phase::running) return EBUSY;
  return join_now(h, result) ? 0 : ESRCH;
}

// `real`: the same, by glibc.
template <typename Real>
int join_until(pthread_t p, void** result, clockid_t clock, const timespec* at, const Real& real) {
  Hull* h = hull_of(p);
  if (!ours(h)) return real();
  uint64_t deadline;
  int error = read_deadline(clock, at, &deadline);
  if (error == EINVAL && clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return error;
  if (error) return try_join(p, result) == 0 ? 0 : error;
  switch (join_hull(h, result, deadline, &error)) {
    case Outcome::joined:
      return 0;
    case Outcome::error:
      return error;
    default:
      return real();
  }
}

int create_real(pthread_t* out, const pthread_attr_t* attributes, Start start, void* argument, bool hull) {
  Thread* t = activation::self()->current;
  Launch l = {hull ? start : nullptr, argument, out};
  t->launch = &l;
  int r = hull ? real().create(out, attributes, run_hull, nullptr)
               : real().create(out, attributes, start, argument);
  activation::self()->current->launch = nullptr;
  return r;
}

}  // namespace

}  // namespace upcall::pthread_abi

using namespace upcall::pthread_abi;  // NOLINT: what follows are glibc's names
using upcall::relaxed;

// NOLINTBEGIN: glibc's names
extern "C" {

INTERPOSED(int, pthread_create,
           (pthread_t * out, const pthread_attr_t* attributes, void* (*start)(void*), void* argument)) {
  if (!active()) {
    upcall::pthread::first_thread();
    return real().create(out, attributes, start, argument);
  }
  bool hull = is_default(attributes) && can_refresh() && !closing();
  if (hull) {
    Launch l = {start, argument, out};
    if (upcall_native_call(give_job, reinterpret_cast<uint64_t>(&l), 0, 0) == 0) return 0;
  }
  return create_real(out, attributes, start, argument, hull);
}

INTERPOSED(int, pthread_join, (pthread_t p, void** result)) {
  Hull* h = hull_of(p);
  int error;
  if (!ours(h)) return real().join(p, result);
  switch (join_hull(h, result, upcall::sched::never, &error)) {
    case Outcome::joined:
      return 0;
    case Outcome::error:
      return error;
    default:
      return real().join(p, result);
  }
}

INTERPOSED(int, pthread_tryjoin_np, (pthread_t p, void** result)) { return try_join(p, result); }

INTERPOSED(int, pthread_clockjoin_np,
           (pthread_t p, void** result, clockid_t clock, const struct timespec* at)) {
  return join_until(p, result, clock, at, [&] { return real().clockjoin(p, result, clock, at); });
}

// With its own real function: libraries that stand before glibc's, as sanitizers do, may know the one and not the other.
INTERPOSED(int, pthread_timedjoin_np, (pthread_t p, void** result, const struct timespec* at)) {
  return join_until(p, result, CLOCK_REALTIME, at, [&] { return real().timedjoin(p, result, at); });
}

INTERPOSED(int, pthread_detach, (pthread_t p)) {
  Hull* h = hull_of(p);
  // As in glibc: who is joined already stays so, and its joiner may look at it.
  if (active() && is_awaited(h)) return 0;
  if (!active() || keep_out(h)) return real().detach(p);
  return join_now(h, nullptr) ? 0 : ESRCH;
}

INTERPOSED(int, pthread_cancel, (pthread_t p)) {
  Hull* h = hull_of(p);
  if (!active()) return real().cancel(p);
  if (!keep_out(h)) return 0;
  // glibc's marks the thread, and signals it if it may be cancelled anywhere. A wait of ours is neither a system call that
  // glibc would have made cancelable nor ended by a mark: the runtime is told, afterwards, so that who wakes up for it
  // finds itself cancelled.
  int r = real().cancel(p);
  // Its signal, which 2.41 always sends, finds nobody while the thread is in end_of_job: it will exit, being kept out.
  if (r == ESRCH && phase_of(h->word.load(relaxed)) != Phase::none) r = 0;
  if (r == 0) upcall_native_call(upcall::linux_abi::post_cancel, p, 0, 0);
  return r;
}

// C11's: made by glibc itself, or by pthread_create.
INTERPOSED(int, thrd_join, (pthread_t p, int* result)) {
  void* value = nullptr;
  if (!ours(hull_of(p))) return real().thrd_join(p, result);
  int r = upcall_pthread_join(p, &value);
  if (r == 0 && result) *result = static_cast<int>(reinterpret_cast<intptr_t>(value));
  return r == 0 ? thrd_success : thrd_error;
}

INTERPOSED(int, thrd_detach, (pthread_t p)) {
  return upcall_pthread_detach(p) == 0 ? thrd_success : thrd_error;
}

INTERPOSED(int, pthread_kill, (pthread_t p, int signal)) {
  // A thread that has finished takes no signals, and that is no error, be it while we look. glibc's own signals are
  // refused all the same.
  Hull* h = hull_of(p);
  if (!active()) return real().kill(p, signal);
  int r;
  do {
    if (phase_of(h->word.load(relaxed)) == Phase::finished) return signal == 32 || signal == 33 ? EINVAL : 0;
    r = real().kill(p, signal);
    // Not found, or its id cleared already (EINVAL), but running a moment ago: it is in end_of_job, on another processor.
    Phase now = phase_of(h->word.load(relaxed));
    if (now != Phase::finished && !(r == ESRCH && now == Phase::running)) return r;
  } while (r == ESRCH || r == EINVAL);
  return r;
}

}  // extern "C"
// NOLINTEND
