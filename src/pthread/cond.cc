// pthread_cond_*: by a function call into the runtime instead of glibc's algorithm on futexes. linux/native_wait.cc
// says how waiters are counted and queued. Mutexes stay glibc's.
#include "kernel/clock.h"
#include "pthread/real.h"
#include "pthread/wait.h"

namespace upcall::pthread {

namespace {

using linux_abi::Condition;
using sched::never;

static_assert(sizeof(pthread_cond_t) == sizeof(Condition));

constexpr uint32_t flag_shared = 1, flag_monotonic = 2;

Condition* ours(pthread_cond_t* cond) noexcept { return reinterpret_cast<Condition*>(cond); }
uint32_t flags_of(const pthread_cond_t* cond) noexcept {
  return reinterpret_cast<const uint32_t*>(cond)[real().cond_flags_word];
}
bool is_real(pthread_cond_t* cond) noexcept { return !symbols() || (flags_of(cond) & flag_shared); }

uint64_t key_of(Condition* c) noexcept {
  return linux_abi::key_of(reinterpret_cast<uint64_t>(c), linux_abi::KeyKind::condition);
}

// The mutex is held: `begun` is nobody else's.
void announce(Condition* c, Thread* t) noexcept {
  t->prepared.store(key_of(c), relaxed);
  c->begun.store(c->begun.load(relaxed) + 2, release);  // pairs with waiting()
}

// Does anybody wait? `ended` first: it never passes `begun`, so if they are equal nobody did when it was read.
bool waiting(Condition* c) noexcept {
  uint64_t ended =
      c->ended.load(acquire);  // before begun; pairs with nothing: begun is the one that is published
  return c->begun.load(acquire) != ended;  // pairs with announce
}

// One thread, before the runtime has started: signal handlers of the kernel may interrupt anything, so the runtime is
// not entered. What ends a wait runs in such a handler, and finds the waiter as others would: by `prepared`.
void wake_alone(Condition* c, Thread* t) noexcept {
  if (t->prepared.load(relaxed) == key_of(c)) t->prepared.store(0, relaxed);
  c->ended.store(c->begun.load(relaxed), relaxed);
}

void leave(Condition* c, Thread* t) noexcept {
  if (started()) {  // by a handler, perhaps
    native(linux_abi::condition_leave, c);
  } else if (t->prepared.load(relaxed) == key_of(c)) {
    t->prepared.store(0, relaxed);
    c->ended.store(c->ended.load(relaxed) + 2, relaxed);
  }
}

long wait_alone(Condition* c, Thread* t, uint64_t deadline) noexcept {
  long r = kernel_wait(&t->prepared, static_cast<uint32_t>(key_of(c)), deadline);
  if (t->prepared.load(relaxed) != key_of(c)) return 0;
  leave(c, t);
  return r == -ETIMEDOUT ? r : 0;
}

void wake(Condition* c, uint64_t all) noexcept {
  if (!waiting(c)) return;
  if (__builtin_expect(started(), 1))
    native(linux_abi::condition_wake, c, all);
  else if (!is_guest())
    wake_alone(c, current());
}

// Until woken: 0; -ETIMEDOUT; -ECANCELED, which the caller must look into with the mutex held.
long wait_queued(Condition* c, uint64_t deadline) noexcept {
  long r;
  do r = upcall_native_call_here(linux_abi::condition_wait, reinterpret_cast<uint64_t>(c), deadline, 0);
  while (r == -EINTR || r == -linux_abi::e_restart);
  return r;
}

// A guest cannot be woken by the runtime: it comes back for no reason, which POSIX permits, and looks again.
int guest_wait(pthread_mutex_t* mutex) {
  if (int error = pthread_mutex_unlock(mutex)) return error;
  constexpr uint64_t a_while = 1'000'000;
  uint32_t word = 0;
  kernel_wait(&word, 0, kernel::now() + a_while);
  return pthread_mutex_lock(mutex);
}

struct Wait {
  Condition* condition;
  pthread_mutex_t* mutex;
};

// A handler that has interrupted the wait ends the thread, at a cancellation point of its own or by pthread_exit:
// clean-up handlers further out find the mutex held.
void abandon(void* argument) {
  auto* w = static_cast<Wait*>(argument);
  leave(w->condition, current());
  pthread_mutex_lock(w->mutex);
}

int wait(Condition* c, pthread_mutex_t* mutex, uint64_t deadline) {
  pthread_testcancel();
  if (is_guest()) return guest_wait(mutex);
  Thread* t = current();
  announce(c, t);
  if (int error = pthread_mutex_unlock(mutex)) {
    leave(c, t);
    return error;
  }
  bool asynchronous = t->asynchronous_cancel;
  if (__builtin_expect(asynchronous, 0)) real().setcanceltype(PTHREAD_CANCEL_DEFERRED, nullptr);
  Wait unwound = {c, mutex};
  _pthread_cleanup_buffer buffer;
  real().cleanup_push(&buffer, abandon, &unwound);
  long result = __builtin_expect(started(), 1) ? wait_queued(c, deadline) : wait_alone(c, t, deadline);
  real().cleanup_pop(&buffer, 0);
  int error = pthread_mutex_lock(mutex);
  if (__builtin_expect(asynchronous, 0)) real().setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  // If cancellation is disabled this was a wake-up for no reason.
  if (__builtin_expect(result == -ECANCELED, 0)) pthread_testcancel();
  if (error) return error;
  return result == -ETIMEDOUT ? ETIMEDOUT : 0;
}

}  // namespace

UPCALL_EXPORT int pthread_cond_init(pthread_cond_t* cond, const pthread_condattr_t* attributes) noexcept {
  return real().cond_init(cond, attributes);  // all zero, but for the flags
}

// Nobody touches a condition once it has been woken from it, so there is nobody to wait for.
UPCALL_EXPORT int pthread_cond_destroy(pthread_cond_t* cond) noexcept {
  return is_real(cond) ? real().cond_destroy(cond) : 0;
}

namespace {

// glibc's waits leave other counts behind than ours, and there will be threads soon.
bool waits_really(pthread_cond_t* cond) {
  if (__builtin_expect(!symbols(), 0) && !(flags_of(cond) & flag_shared)) first_thread();
  return is_real(cond);
}

}  // namespace

UPCALL_EXPORT int pthread_cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex) {
  if (waits_really(cond)) return real().cond_wait(cond, mutex);
  return wait(ours(cond), mutex, never);
}

UPCALL_EXPORT int pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex,
                                         const timespec* until) {
  if (waits_really(cond)) return real().cond_timedwait(cond, mutex, until);
  if (!valid_time(until)) return EINVAL;
  clockid_t clock = flags_of(cond) & flag_monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME;
  return wait(ours(cond), mutex, deadline_of(clock, until));
}

UPCALL_EXPORT int pthread_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,
                                         const timespec* until) {
  if (waits_really(cond)) return real().cond_clockwait(cond, mutex, clock, until);
  if (!valid_time(until) || !valid_clock(clock)) return EINVAL;
  return wait(ours(cond), mutex, deadline_of(clock, until));
}

UPCALL_EXPORT int pthread_cond_signal(pthread_cond_t* cond) noexcept {
  if (is_real(cond)) return real().cond_signal(cond);
  wake(ours(cond), 0);
  return 0;
}

UPCALL_EXPORT int pthread_cond_broadcast(pthread_cond_t* cond) noexcept {
  if (is_real(cond)) return real().cond_broadcast(cond);
  wake(ours(cond), 1);
  return 0;
}

}  // namespace upcall::pthread
