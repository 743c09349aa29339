// The runtime's side of reuse: ending, parking, joining and starting again, each one handler.
//
// A parked hull waits like any thread (wait word). Whoever wants it claims the wait; a spare in a list is claimed by
// the one who takes it out, except when the hull is awake for a moment: for glibc's set*id signal, the one signal
// it still answers. Signals for the thread that has ended are dropped, as the kernel drops those of a dead one.
#include "base/check.h"
#include "linux/signal.h"
#include "pthread/hull.h"

namespace upcall::pthread_abi {

using linux_abi::answer;

namespace {

constexpr uint32_t parked_per_processor = 256;
constexpr uint32_t own_spares = 192;
constexpr uint64_t parked_mask = ~activation::bit(linux_abi::signals::setxid_signal);

// Spares beyond what a processor keeps for itself.
SpinLock g_lock{Rank::hulls};
Hull* g_spares = nullptr;
atomic<uint32_t> g_shared_spares{0};
// The main thread has exited: no thread is parked any more, or taken from a list.
atomic<uint32_t> g_closing{0};

void share(Hull* h) noexcept {
  LockGuard guard(g_lock);
  h->next = g_spares;
  g_spares = h;
  g_shared_spares.store(g_shared_spares.load(relaxed) + 1, relaxed);
}

Hull* take_shared() noexcept {
  if (!g_shared_spares.load(relaxed)) return nullptr;
  LockGuard guard(g_lock);
  Hull* h = g_spares;
  if (h) {
    g_spares = h->next;
    g_shared_spares.store(g_shared_spares.load(relaxed) - 1, relaxed);
  }
  return h;
}

void add_spare(Hull* h) noexcept {
  activation::Processor* p = activation::self()->processor;
  if (p->spare_count >= own_spares) {
    share(h);
    return;
  }
  h->next = static_cast<Hull*>(p->spares);
  p->spares = h;
  ++p->spare_count;
}

Hull* take_spare(activation::Processor* p) noexcept {
  auto* h = static_cast<Hull*>(p->spares);
  if (!h) return take_shared();
  p->spares = h->next;
  --p->spare_count;
  return h;
}

// The hull's wait is the caller's: it goes on with `code`.
void wake_hull(Activation* a, Thread* n, long code) noexcept {
  n->rax = static_cast<uint64_t>(code);
  activation::ready_new(a, n);
}

// The kernel state that a new thread has from its creator `t`, or from nobody.
void renew(Thread* n, Thread* t) noexcept {
  // glibc's set*id counts the threads it has signalled, and waits for each: a hull may be woken for it and be given a
  // function at once.
  if (n->signals.pending) linux_abi::discard_signals(n, parked_mask);
  n->signals.mask.store(t->signals.mask.load(relaxed), relaxed);
  if (n->signals.pending) linux_abi::signals::recheck(n);
  n->restore_mask = false;
  n->interrupted_call = sched::Interrupted::no;
  n->sleep_rem = 0;
  n->prepared.store(0, relaxed);  // a handler may have left a condition by longjmp
  n->altstack_sp = nullptr, n->altstack_size = 0, n->altstack_flags = 2;
  n->nice = t->nice;
  __builtin_memcpy(n->name, t->name, sizeof n->name);
  n->affinity_set = t->affinity_set;
  if (t->affinity_set) __builtin_memcpy(n->affinity, t->affinity, sizeof n->affinity);
  n->born = 0;  // of its stack more than a few pages may have been touched: see sys_madvise
  upcall_copy_control(n);
}

// Does the library keep the id where the kernel would clear it?
bool id_is_known(const Thread* n) noexcept {
  uint32_t known;
  return n->clear_child_tid && !upcall_load_user32(n->clear_child_tid, &known) &&
         known == static_cast<uint32_t>(n->tid);
}

// A thread that has ended but is not joined yet has no id: the library's functions answer as it did. Nobody else has
// the hull before it waits.
void clear_id(Thread* n) noexcept {
  auto* h = static_cast<Hull*>(n->hull);
  if (phase_of(h->word.load(relaxed)) != Phase::finished || !id_is_known(n)) return;
  upcall_store_user32(n->clear_child_tid, 0);
  h->id_unknown = true;
}

// A new thread has an id of its own: mutexes know their owners by it. The kernel would have written it where the library
// keeps it, and where it will be cleared.
void renew_id(Thread* n) noexcept {
  auto* h = static_cast<Hull*>(n->hull);
  if (!h->id_unknown && !id_is_known(n)) return;
  sched::g_threads.renew_id(n);
  h->id_unknown = true;
}

// Before it is known to be anything else than ended: glibc's join takes a thread without an id for gone.
void unpark(Thread* n) noexcept {
  auto* h = static_cast<Hull*>(n->hull);
  if (h->id_unknown) upcall_store_user32(n->clear_child_tid, static_cast<uint32_t>(n->tid));
  h->id_unknown = false;
  n->parked.store(false, relaxed);
  g_counters.threads_parked.fetch_sub(1, relaxed);
}

// True: the joiner still waits for `h`, and is the caller's to make ready.
bool claim_joiner(Thread* j, const Hull* h) noexcept {
  // acquire: pairs with begin_wait; `joining` and `join_word` are of this wait or a later one, and then the claim fails.
  uint64_t word = j->wait_word.load(acquire);
  return j->joining.load(relaxed) == h && j->join_word.load(relaxed) == word && sched::claim_wait(j, word);
}

// The end of `h`'s thread is known: finished, or joined on behalf of the one who waits. False: it is to exit instead.
bool publish_end(Hull* h) noexcept {
  Thread* waiter = nullptr;
  void* result = h->result;
  uint64_t w = h->word.load(relaxed);
  for (;;) {
    if (w & word_keep_out) {
      if (waiter) activation::finish_wait(waiter, 0);
      return false;
    }
    if (Thread* j = waiter ? nullptr : joiner_of(w); j && claim_joiner(j, h)) waiter = j;
    Phase next = waiter ? Phase::spare : Phase::finished;
    // fenced: pairs with enter, and with wait_for_end's look at the word once its wait has begun; with join_finished's
    // exchange: the result is there.
    if (h->word.compare_exchange_weak(w, static_cast<uint64_t>(next), fenced, relaxed)) break;
  }
  // A joiner that was entered but not waiting yet may have begun to, and not have seen the end.
  if (Thread* j = waiter ? nullptr : joiner_of(w); j && claim_joiner(j, h)) activation::finish_wait(j, 0);
  if (waiter) {
    waiter->join_result = result;
    add_spare(h);
    activation::finish_wait(waiter, joined);
  }
  return true;
}

// Waits for a job. A signal or the end of the process may come first.
Thread* park(Thread* t) noexcept {
  uint64_t word = sched::begin_wait(t);
  // fenced: pair with signal posting (see begin_wait) and with close_down
  bool attention = t->attention.load(fenced), close = g_closing.load(fenced);
  if ((attention || close) && sched::claim_wait(t, word)) {
    t->state.store(sched::State::running, relaxed);
    if (!close) return answer(t, -linux_abi::e_intr);
    unpark(t);
    return answer(t, leave);
  }
  return activation::schedule(activation::self());
}

}  // namespace

bool closing() noexcept { return g_closing.load(relaxed) != 0; }

Thread* give_job(Thread* t) noexcept {
  const auto* wanted = reinterpret_cast<const Launch*>(t->rdi);
  Activation* a = activation::self();
  // The library keeps a thread's policy in its own record: only the usual one is known to be there. What a bound thread
  // makes is bound.
  if (t->sched_policy || t->bound || closing()) return answer(t, -linux_abi::e_again);
  for (;;) {
    Hull* h = take_spare(a->processor);
    if (!h) return answer(t, -linux_abi::e_again);
    Thread* n = h->thread.load(relaxed);
    CHECK(phase_of(h->word.load(relaxed)) == Phase::spare && n->hull == h && n->parked.load(relaxed));
    // acquire: pairs with begin_wait
    if (!sched::claim_wait(n, n->wait_word.load(acquire))) {
      share(h);  // not parked yet, or awake for a moment
      return answer(t, -linux_abi::e_again);
    }
    renew_id(n);
    unpark(n);
    pthread_t id = h->id;
    // The latter: the real function is to fault at it.
    if (h->locales != g_locales.load(relaxed) || upcall_copy_user(wanted->out, &id, sizeof id)) {
      h->word.store(static_cast<uint64_t>(Phase::exiting), relaxed);
      wake_hull(a, n, retire);
      continue;
    }
    h->start = wanted->start;
    h->argument = wanted->argument;
    renew(n, t);
    ++a->processor->counters.threads_created;
    ++a->processor->counters.threads_reused;
    raise_peak(g_counters.threads_peak, sched::g_threads.live() - g_counters.threads_parked.load(relaxed));
    // Plain: the id becomes known to others through this thread, or through the job.
    h->word.store(static_cast<uint64_t>(Phase::running), relaxed);
    wake_hull(a, n, job);
    return answer(t, 0);
  }
}

Thread* end_of_job(Thread* t) noexcept {
  auto* h = reinterpret_cast<Hull*>(t->rdi);
  const activation::Runtime& r = activation::g_runtime;
  if (!r.started || t->is_main || t->touched || t->cancelled.load(relaxed) || closing() ||
      g_counters.threads_parked.load(relaxed) >= uint64_t{parked_per_processor} * r.processors)
    return answer(t, out);
  // What was sent while the function ran is handled by this thread.
  if (t->attention.load(relaxed)) return answer(t, look);
  activation::save_for_native_switch(t);
  uint64_t mask = t->signals.mask.load(relaxed);
  t->interrupted_call = sched::Interrupted::no;
  t->signals.mask.store(parked_mask, relaxed);
  t->parked.store(true, relaxed);
  g_counters.threads_parked.fetch_add(1, relaxed);
  if (!publish_end(h)) {
    unpark(t);
    t->signals.mask.store(mask, relaxed);
    return answer(t, out);
  }
  clear_id(t);
  return park(t);
}

Thread* park_again(Thread* t) noexcept {
  linux_abi::pass_signals_on(t);
  activation::save_for_native_switch(t);
  t->interrupted_call = sched::Interrupted::no;
  return park(t);
}

namespace {

// The wait has begun but is not to last. False: somebody has ended it already, and made the thread ready.
bool call_off(Thread* t, uint64_t word) noexcept {
  if (!sched::claim_wait(t, word)) return false;
  if (sched::is_armed(t)) t->timers->cancel(t);
  t->state.store(sched::State::running, relaxed);
  return true;
}

// Enters `t` as the joiner of `h`. 0, or what ends the wait: 1 nothing to wait for, -EINVAL another joiner.
long enter(Thread* t, Hull* h) noexcept {
  uint64_t w = h->word.load(relaxed);
  for (;;) {
    if (phase_of(w) != Phase::running) return 1;
    Thread* other = joiner_of(w);
    if (other && other != t && other->joining.load(relaxed) == h) return -linux_abi::e_inval;
    uint64_t fresh = (w & word_flags) | reinterpret_cast<uint64_t>(t);
    // acq_rel: pairs with publish_end's exchange, which wakes who is entered
    if (h->word.compare_exchange_weak(w, fresh, acq_rel, relaxed)) return 0;
  }
}

}  // namespace

Thread* join_finished(Thread* t) noexcept {
  auto* h = reinterpret_cast<Hull*>(t->rdi);
  // acquire: pairs with publish_end
  if (phase_of(h->word.load(acquire)) != Phase::finished) return answer(t, 0);
  void* result = h->result;
  auto w = static_cast<uint64_t>(Phase::finished);
  // acq_rel: against other joiners and leave_with
  if (!h->word.compare_exchange_strong(w, static_cast<uint64_t>(Phase::spare), acq_rel, relaxed))
    return answer(t, 0);
  if (!closing()) add_spare(h);
  t->join_result = result;
  return answer(t, joined);
}

Thread* wait_for_end(Thread* t) noexcept {
  auto* h = reinterpret_cast<Hull*>(t->rdi);
  uint64_t deadline = t->rsi;
  bool minding_cancel = t->rdx != 0;
  if (phase_of(h->word.load(relaxed)) != Phase::running) return join_finished(t);
  Activation* a = activation::self();
  activation::save_for_native_switch(t);
  t->interrupted_call = sched::Interrupted::no;
  t->timeout_result = -linux_abi::e_timedout;
  t->join_word.store(sched::next_wait_word(t), relaxed);
  t->joining.store(h, relaxed);
  if (long r = enter(t, h)) {
    t->join_word.store(0, relaxed);  // the next wait, which has this word, is another one
    return answer(t, r < 0 ? r : 0);
  }
  uint64_t word = sched::begin_wait_until(t, &a->processor->timers, deadline);
  if (!word) {
    t->join_word.store(0, relaxed);
    return answer(t, -linux_abi::e_nomem);
  }
  // fenced: pairs with publish_end's exchange and its look at the wait word
  if (phase_of(h->word.load(fenced)) != Phase::running && call_off(t, word)) return join_finished(t);
  if (sched::came_early(t, deadline) && call_off(t, word)) return answer(t, t->timeout_result);
  // fenced: pair with signal posting (see begin_wait) and with post_cancel
  bool look_up = t->attention.load(fenced) || (minding_cancel && t->cancelled.load(fenced));
  if (look_up && call_off(t, word)) return answer(t, -linux_abi::e_intr);
  return activation::schedule(a);
}

namespace {

void adopt(Thread* creator, Thread* n, uint64_t tls) noexcept {
  const auto* l = static_cast<const Launch*>(creator->launch);
  creator->launch = nullptr;
  Hull* h = hull_of(tls);
  h->thread.store(n, relaxed);
  h->id = tls;
  if (!l->start) return;
  h->start = l->start;
  h->argument = l->argument;
  h->locales = g_locales.load(relaxed);
  h->word.store(static_cast<uint64_t>(Phase::running), relaxed);
  n->hull = h;
}

// No more threads are kept: those that are go on to glibc's exit, the last of them to the process's.
void close_down(Activation* a) noexcept {
  g_closing.store(1, fenced);
  Thread* list = nullptr;
  sched::g_threads.find_if([&](Thread* n) {
    if (n->parked.load(relaxed) && sched::claim_wait(n, n->wait_word.load(acquire))) {  // acquire: begin_wait
      n->wait_next = list;
      list = n;
    }
    return false;
  });
  while (Thread* n = list) {
    list = n->wait_next;
    unpark(n);
    wake_hull(a, n, leave);
  }
}

void thread_exits(Thread* t) noexcept {
  if (auto* h = static_cast<Hull*>(t->hull)) {
    // acq_rel: pairs with enter
    uint64_t w = h->word.exchange(static_cast<uint64_t>(Phase::exiting), acq_rel);
    Thread* j = phase_of(w) == Phase::running ? joiner_of(w) : nullptr;
    if (j && claim_joiner(j, h)) activation::finish_wait(j, 0);
  }
  if (t->is_main) close_down(activation::self());
}

// glibc's own record of the others says that they have ended, and its join of them returns.
void forked(Thread* survivor) noexcept {
  sched::g_threads.find_if([survivor](Thread* n) {
    if (n->hull && n != survivor)
      static_cast<Hull*>(n->hull)->word.store(static_cast<uint64_t>(Phase::exiting), relaxed);
    return false;
  });
  // Who waits for the survivor is not here; its descriptor is free, but a wait in it looks as if it could be claimed.
  if (auto* h = static_cast<Hull*>(survivor->hull))
    h->word.store(h->word.load(relaxed) & word_flags, relaxed);
  g_spares = nullptr;
  g_shared_spares.store(0, relaxed);
  g_closing.store(0, relaxed);
  g_lock.unlock();
  g_counters.threads_parked.store(0, relaxed);
  for (uint32_t i = 0; i < activation::g_runtime.processors; ++i) {
    activation::g_runtime.processor[i].spares = nullptr;
    activation::g_runtime.processor[i].spare_count = 0;
  }
}

}  // namespace

void install_hooks() noexcept {
  linux_abi::g_adopt = adopt;
  linux_abi::g_thread_exits = thread_exits;
  linux_abi::g_forked = forked;
}

}  // namespace upcall::pthread_abi
