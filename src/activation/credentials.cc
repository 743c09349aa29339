// How a change of credentials reaches every kernel thread. One change at a time, numbered; each kernel thread has the number
// of the last one that it has made. Who makes the change sends a signal to all that have an older one. The handler does
// nothing but the call and may run anywhere: in the program, in the runtime with locks held, in the middle of a call. A kernel
// thread that has been told executes no instruction of the program before.
//
// The C library tells its threads, waits until each has made its call, and makes the last one itself. Only that one waits
// until all have followed, and holds nothing meanwhile: others may have to go on before a kernel thread can be interrupted.
//
// Kernel threads that are being made have what their maker had when it made them. It cannot be interrupted meanwhile and
// announces them before: the child is known, with its number, before the maker follows a change. Counting the announcements
// tells whether one has come during a look at all. The child looks by itself before its signals are open.
#include "activation/credentials.h"

#include "base/check.h"
#include "kernel/clock.h"
#include "kernel/futex.h"
#include "kernel/memory.h"

namespace upcall::activation {

namespace {

constexpr uint32_t own = ~0u;  // a bound thread's: not concerned
constexpr size_t longest_list = 65536 * 4;

// Written with the lock held, while no kernel thread has a change to make.
IdCall g_call;
bool g_by_bound = false;  // who made it has credentials of its own
bool g_any = false;       // g_call is the last change of all
void* g_list = nullptr;   // g_call's
atomic<uint32_t> g_change{0};
atomic<uint32_t> g_followed{0};  // futex: counts those that have made a change
atomic<uint32_t> g_done{0}, g_refused{0};
atomic<uint32_t> g_announced{0};  // kernel threads ever made
atomic<KernelThread*> g_helpers{nullptr};
atomic<uint32_t> g_lock{0};  // futex: 0 free, 1 taken, 2 somebody may wait. A holder may wait for the kernel.

void lock() noexcept {
  uint32_t free = 0;
  if (g_lock.compare_exchange_strong(free, 1, acquire, relaxed)) return;  // pairs with unlock
  while (g_lock.exchange(2, acquire)) kernel::futex_wait(&g_lock, 2);
}

void unlock() noexcept {
  if (g_lock.exchange(0, release) == 2) kernel::futex_wake(&g_lock, 1);
}

long make(const IdCall& c) noexcept { return kernel::sys(c.nr, c.args[0], c.args[1], c.args[2]); }

void follow(KernelThread* k) noexcept {
  uint32_t change = g_change.load(fenced);  // pairs with publish
  uint32_t seen = k->seen.load(relaxed);
  // Newer: it is about to publish the change that it has made.
  if (seen == own || static_cast<int32_t>(change - seen) <= 0) return;
  auto& result = kernel::is_error(make(g_call)) ? g_refused : g_done;
  result.fetch_add(1, relaxed);
  k->seen.store(change, fenced);  // pairs with pending: the call has been made
  g_followed.fetch_add(1, fenced);
  kernel::futex_wake(&g_followed, 1);
}

KernelThread* find_by_id() noexcept {
  auto tid = static_cast<int32_t>(kernel::sys(__NR_gettid));
  for (KernelThread* k = g_helpers.load(acquire); k; k = k->next)  // pairs with add_helper
    if (k->helper_tid.load(relaxed) == tid) return k;
  // An activation with GS 0 is about to make a process, or has just made it (vfork).
  for (uint32_t i = 0; i < activation_count(); ++i)
    if (Activation* a = activation_at(i); a && a->tid == tid && a->alive.load(relaxed)) return &a->kernel;
  return nullptr;
}

// True: k has a change to make. It is told, once.
bool pending(KernelThread* k, int32_t tid, uint32_t change) noexcept {
  uint32_t seen = k->seen.load(fenced);
  if (seen == own || static_cast<int32_t>(seen - change) >= 0) return false;
  if (k->told.load(relaxed) == change || tid <= 0) return true;
  // Refused where it is not there yet, or too many signals are queued for the user: again, soon.
  if (!kernel::is_error(kernel::sys(__NR_tgkill, g_runtime.pid, tid, credentials_signal)))
    k->told.store(change, relaxed);
  return true;
}

// One look at all.
bool any_pending(uint32_t change) noexcept {
  bool found = false;
  for (uint32_t i = 0; i < activation_count(); ++i) {
    Activation* a = activation_at(i);
    if (a && a->alive.load(acquire)) found |= pending(&a->kernel, a->tid, change);  // pairs with keep_retired
  }
  for (KernelThread* k = g_helpers.load(acquire); k; k = k->next) {  // pairs with add_helper
    int32_t tid = k->helper_tid.load(relaxed);
    if (tid) found |= pending(k, tid, change);
  }
  return found;
}

// As the C library has it: a process of which only a part has given up its rights must not go on.
void check_results() noexcept {
  if (g_refused.load(relaxed) && (!g_by_bound || g_done.load(relaxed)))
    fatal_exit(134, "a change of user or group ids was refused to a part of the process");
}

void wait_for_all() noexcept {
  constexpr uint64_t shortly = 1'000'000, longest = 100'000'000;
  uint32_t change = g_change.load(acquire);
  for (uint64_t patience = shortly;;) {
    uint32_t followed = g_followed.load(fenced), announced = g_announced.load(fenced);
    if (any_pending(change)) {
      // Who was not there yet is told at the next look.
      kernel::futex_wait(&g_followed, followed, kernel::now() + patience);
      if (patience < longest) patience *= 2;
    } else if (g_announced.load(fenced) == announced) {
      // fenced: who had an older number when it announced somebody has been seen with the new one after that.
      break;
    }
  }
  check_results();
}

// Found made by another one: that has told us as well, a moment ago.
void wait_for_own() noexcept {
  const auto& seen = self()->kernel.seen;
  for (uint32_t i = 0; static_cast<int32_t>(g_change.load(relaxed) - seen.load(relaxed)) > 0; ++i)
    wait_step(i);
}

// The C library makes every thread repeat the call: all but the first find that it has been made. Made twice in a row it
// changes nothing. Refused: made by a bound thread that had rights of its own.
bool is_last(const IdCall& c) noexcept {
  if (!g_any || g_refused.load(relaxed) || g_call.nr != c.nr || g_call.args[0] != c.args[0]) return false;
  if (c.nr == __NR_setgroups) return __builtin_memcmp(g_list, c.list, c.list_bytes) == 0;
  return g_call.args[1] == c.args[1] && g_call.args[2] == c.args[2];
}

// With the lock held. The calling activation has made the change, unless it is bound.
void publish(const IdCall& c, bool bound) noexcept {
  g_call = c;
  g_by_bound = bound;
  if (c.list) {
    __builtin_memcpy(g_list, c.list, c.list_bytes);
    g_call.args[1] = reinterpret_cast<long>(g_list);
  }
  g_any = true;
  g_done.store(0, relaxed);
  g_refused.store(0, relaxed);
  uint32_t change = g_change.load(relaxed) + 1;
  if (!bound) self()->kernel.seen.store(change, relaxed);
  // fenced: pairs with follow. The caller may be interrupted before, and has nothing to do then.
  g_change.store(change, fenced);
  any_pending(change);
}

// With the lock held: the call itself, and all are told.
long make_and_tell(const IdCall& c, bool bound) noexcept {
  wait_for_all();  // the last one's, which others may still wait for
  // Before the call: afterwards it may not be allowed any more. They must have the CPU to follow, and lower themselves.
  raise_sentinels();
  long r = bound ? 0 : make(c);
  if (r == 0)
    publish(c, bound);
  else
    lower_sentinels();
  return r;
}

}  // namespace

long change_credentials(const IdCall& c, bool bound, bool last) noexcept {
  lock();
  if (!g_list) g_list = kernel::map_pages(longest_list);
  long r = g_list ? 0 : -12;
  if (r == 0 && bound) r = make(c);
  if (r == 0 && !is_last(c)) r = make_and_tell(c, bound);
  unlock();
  if (r == 0 && !bound) wait_for_own();
  if (r == 0 && last) wait_for_all();
  return r;
}

bool follow_credentials() noexcept {
  KernelThread* k = arch::read_gs() ? &self()->kernel : find_by_id();
  if (!k) return false;
  follow(k);
  lower_own_sentinel(k->helper_tid.load(relaxed));
  return true;
}

void follow_at_first(Activation* a) noexcept {
  if (KernelThread* k = a ? &a->kernel : find_by_id()) follow(k);
}

void part_with_credentials(Activation* a) noexcept {
  for (uint32_t i = 0;; ++i) {
    uint32_t seen = g_change.load(fenced);
    // fenced: the last change has been made, and who publishes another one finds us apart, or we find it.
    if (a->kernel.seen.compare_exchange_strong(seen, own, fenced, relaxed) || seen == own) return;
    wait_step(i);  // the signal is on its way
  }
}

void pass_credentials_on(KernelThread* child) noexcept {
  child->told.store(0, relaxed);
  child->seen.store(self()->kernel.seen.load(relaxed), relaxed);
  g_announced.fetch_add(1, fenced);  // pairs with wait_for_all
}

void begin_credentials(Activation* only) noexcept {
  g_any = false;
  g_lock.store(0, relaxed);
  g_helpers.store(nullptr, relaxed);
  only->alive.store(1, relaxed);
  only->kernel.seen.store(g_change.load(relaxed), relaxed);
}

void add_helper(KernelThread* k) noexcept {
  KernelThread* head = g_helpers.load(relaxed);
  do {
    k->next = head;
  } while (!g_helpers.compare_exchange_weak(head, k, release, relaxed));  // pairs with the loads of g_helpers
}

}  // namespace upcall::activation
