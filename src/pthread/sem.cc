// sem_*: glibc's layout and counting, so that a process-private semaphore may be handed from one implementation to the
// other; only the waiting is ours. The value is in the low half of a word, the number of waiters in the high half.
#include <limits.h>

#include "pthread/real.h"
#include "pthread/wait.h"

namespace upcall::pthread {

namespace {

using sched::never;

struct Semaphore {
  atomic<uint64_t> word;  // value | waiters << 32
  int shared;             // 0: process-private
};
static_assert(sizeof(Semaphore) <= sizeof(sem_t));

constexpr uint64_t one_waiter = 1ull << 32;
uint32_t value_of(uint64_t word) noexcept { return static_cast<uint32_t>(word); }

Semaphore* ours(sem_t* s) noexcept { return reinterpret_cast<Semaphore*>(s); }
bool is_real(sem_t* s) noexcept { return !symbols() || ours(s)->shared; }

// Takes one, and `waiters` from the count of those who wait.
bool take(Semaphore* s, uint64_t waiters) noexcept {
  uint64_t word = s->word.load(relaxed);
  while (value_of(word))
    // acquire: pairs with sem_post's release.
    if (s->word.compare_exchange_weak(word, word - 1 - waiters, acquire, relaxed)) return true;
  return false;
}

// Waiters in the kernel: a process's only thread, or a guest.
atomic<uint32_t> g_kernel_waiters{0};

long block(Semaphore* s, uint64_t deadline) noexcept {
  if (__builtin_expect(is_guest() || !started(), 0)) {
    g_kernel_waiters.fetch_add(1, relaxed);
    long r = kernel_wait(s, 0, deadline);  // the low half is the value
    g_kernel_waiters.fetch_sub(1, relaxed);
    return r == -EAGAIN ? 0 : r;
  }
  return native(linux_abi::semaphore_wait, s, deadline);
}

int fail(int error) noexcept {
  errno = error;
  return -1;
}

struct Waiter {
  Semaphore* semaphore;
  bool counted;
};

// The thread ends while it waits: cancelled, or by a handler that has interrupted the wait.
void forget(void* argument) {
  auto* w = static_cast<Waiter*>(argument);
  if (w->counted) w->semaphore->word.fetch_sub(one_waiter, relaxed);
}

// `w` is counted. The semaphore is not touched once something has been taken, nor is the count given back twice: a
// handler may still end the thread before the clean-up is taken off.
long wait_counted(Waiter* w, uint64_t deadline) {
  Semaphore* s = w->semaphore;
  for (;;) {
    long r = block(s, deadline);
    // From glibc 2.41 on every request comes with its signal, whose handler ends a wait that has a limit (signal(7)) before
    // the runtime is told.
    if (r == -ECANCELED || r == -EINTR) pthread_testcancel();
    if (r == -ECANCELED) r = 0;
    if (take(s, one_waiter)) {
      w->counted = false;
      return 0;
    }
    if (r == -EINTR || r == -ETIMEDOUT) {
      s->word.fetch_sub(one_waiter, relaxed);
      w->counted = false;
      return r;
    }
  }
}

int wait(Semaphore* s, uint64_t deadline) {
  pthread_testcancel();
  if (take(s, 0)) return 0;
  s->word.fetch_add(one_waiter, relaxed);  // pairs with sem_post's: one of the two is the later
  Waiter w = {s, true};
  _pthread_cleanup_buffer buffer;
  real().cleanup_push(&buffer, forget, &w);
  long r = wait_counted(&w, deadline);
  real().cleanup_pop(&buffer, 0);
  return r ? fail(static_cast<int>(-r)) : 0;
}

}  // namespace

UPCALL_EXPORT int sem_wait(sem_t* s) {
  if (is_real(s)) return real().sem_wait(s);
  return wait(ours(s), never);
}

UPCALL_EXPORT int sem_trywait(sem_t* s) noexcept {
  if (is_real(s)) return real().sem_trywait(s);
  return take(ours(s), 0) ? 0 : fail(EAGAIN);
}

UPCALL_EXPORT int sem_timedwait(sem_t* s, const timespec* until) {
  if (is_real(s)) return real().sem_timedwait(s, until);
  if (!valid_time(until)) return fail(EINVAL);
  return wait(ours(s), deadline_of(CLOCK_REALTIME, until));
}

UPCALL_EXPORT int sem_clockwait(sem_t* s, clockid_t clock, const timespec* until) {
  if (is_real(s)) return real().sem_clockwait(s, clock, until);
  if (!valid_time(until) || !valid_clock(clock)) return fail(EINVAL);
  return wait(ours(s), deadline_of(clock, until));
}

UPCALL_EXPORT int sem_post(sem_t* s) noexcept {
  // Found at load, as handlers may call it; before that by constructors only.
  if (is_real(s)) return g_real.sem_post ? g_real.sem_post(s) : real().sem_post(s);
  uint64_t word = ours(s)->word.load(relaxed);
  do {
    if (value_of(word) == SEM_VALUE_MAX) return fail(EOVERFLOW);
    // release: pairs with take. From here on the semaphore may be gone.
  } while (!ours(s)->word.compare_exchange_weak(word, word + 1, release, relaxed));
  if (word < one_waiter) return 0;
  if (started()) native(linux_abi::semaphore_wake, s);
  if (g_kernel_waiters.load(relaxed)) kernel_wake(s);
  return 0;
}

}  // namespace upcall::pthread
