// What must hold, and what is printed when it does not.
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// The ready queue's lists are counted from outside.
#include "base/fence.h"
#include "base/spinlock.h"
#include "sched/thread.h"
#define private public
#include "sched/ready_queue.h"
#include "sched/thread_table.h"
#undef private

#include "machine.h"
#include "program.h"
#include "run.h"

namespace upcall::sim {

namespace {

using activation::g_runtime;
using activation::Owner;
using activation::OwnerWord;

constexpr uint64_t events_kept = 1024;
Event g_events[events_kept];
uint64_t g_event_count = 0;

const char* const owner_names[] = {"vacant", "running", "idle", "in_kernel"};
const char* const why_names[] = {"can run",         "futex", "waits for signals", "asleep", "in a call",
                                 "in a page fault", "ended"};
const char* const state_names[] = {"running", "ready", "waiting", "in_kernel", "exited"};

OwnerWord owner_of(const Processor& p) noexcept { return {peek(p.owner)}; }
bool has_work(const Processor& p) noexcept { return peek(p.ready.count_) || peek(p.inbox); }

struct Field {
  size_t offset;
  const char* name;
};
const Field processor_fields[] = {
    {offsetof(Processor, current_priority), "current_priority"},
    {offsetof(Processor, dispatches), "dispatches"},
    {offsetof(Processor, ready) + offsetof(sched::ReadyQueue, busy_), "ready.busy"},
    {offsetof(Processor, ready) + offsetof(sched::ReadyQueue, count_), "ready.count"},
    {offsetof(Processor, ready) + offsetof(sched::ReadyQueue, revoked_), "ready.revoked"},
    {offsetof(Processor, ready) + offsetof(sched::ReadyQueue, thieves_), "ready.thieves"},
    {offsetof(Processor, owner), "owner"},
    {offsetof(Processor, inbox), "inbox"},
    {offsetof(Processor, timers), "timers.lock"},
    {offsetof(Processor, pool_lock), "pool_lock"},
    {offsetof(Processor, standby), "standby"},
    {offsetof(Processor, preempt_in_flight), "preempt_in_flight"},
    {offsetof(Processor, spawning), "spawning"},
    {offsetof(Processor, wants_activation), "wants_activation"},
    {offsetof(Processor, sentinel_armed), "sentinel_armed"},
    {offsetof(Processor, sentinel_backoff), "sentinel_backoff"},
    {offsetof(Processor, seen_dispatches), "seen_dispatches"}};
const Field activation_fields[] = {{offsetof(Activation, in_runtime), "in_runtime"},
                                   {offsetof(Activation, resched), "resched"},
                                   {offsetof(Activation, interrupt), "interrupt"},
                                   {offsetof(Activation, lost), "lost"},
                                   {offsetof(Activation, wake), "wake"},
                                   {offsetof(Activation, signal_sent), "signal_sent"},
                                   {offsetof(Activation, adopted), "adopted"},
                                   {offsetof(Activation, lost_listed), "lost_listed"}};
const Field thread_fields[] = {{offsetof(Thread, attention), "attention"},
                               {offsetof(Thread, activation), "activation"},
                               {offsetof(Thread, state), "state"},
                               {offsetof(Thread, wait_word), "wait_word"},
                               {offsetof(Thread, wait_bucket), "wait_bucket"},
                               {offsetof(Thread, timer_index), "timer_index"},
                               {offsetof(Thread, prepared), "prepared"},
                               {offsetof(Thread, joining), "joining"},
                               {offsetof(Thread, join_word), "join_word"},
                               {offsetof(Thread, parked), "parked"},
                               {offsetof(Thread, exiting_tid), "exiting_tid"}};

template <size_t n>
const char* field(const Field (&fields)[n], const void* object, size_t size, const void* at) noexcept {
  auto offset = static_cast<size_t>(static_cast<const char*>(at) - static_cast<const char*>(object));
  if (offset >= size) return nullptr;
  for (const Field& f : fields)
    if (f.offset == offset) return f.name;
  return "?";
}

void print_name(const void* at) noexcept {
  for (uint32_t i = 0; i < g_runtime.processors; ++i)
    if (const char* f = field(processor_fields, &g_runtime.processor[i], sizeof(Processor), at)) {
      printf(" processor %u %s", i, f);
      return;
    }
  for (uint32_t i = 0; i < activation::activation_count(); ++i)
    if (const char* f = field(activation_fields, activation::activation_at(i), sizeof(Activation), at)) {
      printf(" activation %u %s", i, f);
      return;
    }
  for (int32_t slot = 0; slot < max_users; ++slot)
    if (const Thread* t = sched::g_threads.at(static_cast<uint32_t>(slot)))
      if (const char* f = field(thread_fields, t, sizeof(Thread), at)) {
        printf(" descriptor %d %s", slot, f);
        return;
      }
  printf(" %p", at);
}

void print_event(const Event& e) noexcept {
  printf("  %8lu %10.3f us  %-2d %-12s %s", static_cast<unsigned long>(e.step),
         static_cast<double>(e.now - 1'000'000'000) / 1000, e.thread, g.thread[e.thread].role, e.what);
  if (e.at) print_name(e.at);
  if (e.value || !e.at) printf(" = %#lx", static_cast<unsigned long>(e.value));
  putchar('\n');
}

void dump() noexcept {
  printf("processors:\n");
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    Processor& p = g_runtime.processor[i];
    OwnerWord w = owner_of(p);
    printf("  %u: %s(%u), %u ready, inbox %s, sentinel %s, standby %d, pool %d, next timer in %ld ns\n", i,
           owner_names[static_cast<int>(w.state())], w.activation(), peek(p.ready.count_),
           peek(p.inbox) ? "full" : "empty", peek(p.sentinel_armed) ? "armed" : "not armed",
           peek(p.standby) ? static_cast<int>(peek(p.standby)->index) : -1,
           p.pool ? static_cast<int>(p.pool->index) : -1, static_cast<long>(p.timers.next() - g.now));
  }
  printf("kernel threads:\n");
  for (int i = 0; i < g.count; ++i) {
    const KernelThread& k = g.thread[i];
    printf("  %d %s: %s", i, k.role, why_names[static_cast<int>(k.why)]);
    if (k.futex) print_name(k.futex);
    if (k.why != Why::runnable && k.until != ~0ull) printf(" for %ld ns", static_cast<long>(k.until - g.now));
    if (k.user) printf(", runs thread %d", k.user->index);
    if (k.signal_pending) printf(", signal pending");
    if (k.buffered) printf(", %u stores buffered", k.buffered);
    putchar('\n');
  }
  printf("threads:\n");
  for (int i = 0; i < g_user_count; ++i) {
    const User& u = g_users[i];
    Thread* t = thread_of(u);
    printf("  %d %s%s", i, u.doing, u.ended ? ", ended" : "");
    if (t)
      printf(": descriptor %u %s, wait word %lx%s%s", t->slot, state_names[static_cast<int>(peek(t->state))],
             static_cast<unsigned long>(peek(t->wait_word)), peek(t->parked) ? ", parked" : "",
             peek(t->attention) ? ", attention" : "");
    putchar('\n');
  }
}

// Where a thread is: in queues and inboxes.
int times_queued(const Thread* wanted) noexcept {
  int n = 0;
  auto count = [&](const Thread* t) {
    int length = 0;
    for (; t; t = t->next) {
      n += t == wanted;
      SIM_CHECK(++length < 1000, "a ready queue is a circle");
    }
  };
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    const Processor& p = g_runtime.processor[i];
    n += p.ready.lifo_ == wanted;
    count(p.ready.fresh_);
    count(p.ready.urgent_.head);
    count(p.ready.woken_.head);
    count(p.ready.rest_.head);
    count(peek(p.inbox));
  }
  return n;
}

// All kernel threads sleep: every thread runs, waits, or stands in one queue.
void check_places() noexcept {
  for (int i = 0; i < g_user_count; ++i) {
    const User& u = g_users[i];
    Thread* t = thread_of(u);
    if (u.ended || !t) continue;
    int queued = times_queued(t);
    bool runs = u.on != nullptr, waits = peek(t->wait_word) & 1;
    bool in_call = peek(t->state) == sched::State::in_kernel;
    SIM_CHECK(queued + runs + waits + in_call == 1, "thread %d is in %d queues%s%s%s", i, queued,
              runs ? ", runs" : "", waits ? ", waits" : "", in_call ? ", is in a call" : "");
  }
}

}  // namespace

Thread* thread_of(const User& u) noexcept {
  for (uint32_t slot = 0; slot < max_users; ++slot)
    if (Thread* t = sched::g_threads.at(slot); t && t->fs == u.fs && t->tid) return t;
  return nullptr;
}

void record(const char* what, const void* at, uint64_t value) noexcept {
  // Addresses of the program and of the runtime's variables differ from run to run; who does what when does not.
  g.hash = (g.hash ^ (g.now * 64 + static_cast<uint64_t>(g.current->index))) * 0x100000001b3ull;
  Event e = {g.steps, g.now, g.current->index, what, at, value};
  g_events[g_event_count++ % events_kept] = e;
  if (!g_options.trace) return;
  g.quiet = true;
  print_event(e);
  g.quiet = false;
}

void fail(const char* format, ...) noexcept {
  g.quiet = true;
  va_list list;
  va_start(list, format);
  vsnprintf(g_result->message, sizeof g_result->message, format, list);
  va_end(list);
  g_result->failed = true;
  g_result->hash = g.hash;
  g_result->steps = g.steps;
  if (g_options.report) {
    printf("seed %lu: %s\n", static_cast<unsigned long>(g_options.seed), g_result->message);
    printf("%s\n", g_result->settings);
    uint64_t n = g_event_count < g_options.events ? g_event_count : g_options.events;
    if (n > events_kept) n = events_kept;
    printf("last %lu events (step, time, kernel thread, what):\n", static_cast<unsigned long>(n));
    if (!g_options.trace)
      for (uint64_t i = g_event_count - n; i < g_event_count; ++i) print_event(g_events[i % events_kept]);
    dump();
    fflush(stdout);
  }
  _exit(1);
}

void check_private_store(const void* at) noexcept {
  auto offset = reinterpret_cast<uintptr_t>(at) - reinterpret_cast<uintptr_t>(g_runtime.processor);
  if (offset >= g_runtime.processors * sizeof(Processor)) return;
  const Processor& p = g_runtime.processor[offset / sizeof(Processor)];
  if (at != &p.dispatches && at != &p.ready.busy_) return;
  ++g.owner_checks;
  OwnerWord w = owner_of(p);
  auto* a = reinterpret_cast<Activation*>(g.current->gs);
  SIM_CHECK(w.state() == Owner::running && w.activation() == a->index,
            "activation %u works on processor %u, whose owner is %s(%u)", a->index, p.index,
            owner_names[static_cast<int>(w.state())], w.activation());
}

void check_quiescent(uint64_t next) noexcept {
  ++g.quiet_checks;
  g.quiet = true;
  check_places();
  SIM_CHECK(next != ~0ull, "deadlock: everything waits, for nothing");
  // Between two looks at the clock.
  constexpr uint64_t slack = 20'000;
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    const Processor& p = g_runtime.processor[i];
    OwnerWord w = owner_of(p);
    // The sentinel may be having its pause; without one the monitor's ticks find calls that block.
    uint64_t bound = g_runtime.events == activation::Events::monitor ? 2'000'000
                     : peek(p.sentinel_armed)                        ? 200'000
                                                                     : 0;
    bool soon = w.state() == Owner::in_kernel && next - g.now <= bound;
    SIM_CHECK(w.state() == Owner::running || !has_work(p) || soon,
              "lost wake-up: threads are ready on processor %u, which is %s", i,
              owner_names[static_cast<int>(w.state())]);
    uint64_t due = p.timers.next() > g.now ? p.timers.next() : g.now;
    SIM_CHECK(p.timers.next() == sched::never || next <= due + slack,
              "lost timer: processor %u has one that is due %ld ns before anybody will look", i,
              static_cast<long>(next - due));
  }
  g.quiet = false;
}

// What happened to one activation happened in turn, by the events' numbers: it lost its processor in the kernel, it came back.
// A number that is not there was left out, or its event is on its way, and may be of any activation.
static void check_upcalls() noexcept {
  using activation::Upcall;
  enum class Last : uint8_t { unknown, blocked, other };
  static Last last[4096];
  uint64_t latencies = 0, taken = activation::upcalls(Upcall::activation_blocked);
  activation::Event e;
  for (uint64_t n = 1; n <= activation::last_event(); ++n) {
    if (!activation::read_event(n, &e)) {
      __builtin_memset(last, 0, sizeof last);
      continue;
    }
    SIM_CHECK(e.sequence == n && e.activation < 4096, "event %lu is damaged", static_cast<unsigned long>(n));
    Last& was = last[e.activation];
    SIM_CHECK(was == Last::unknown || (was == Last::blocked) == (e.kind == Upcall::activation_unblocked),
              "upcall %lu of activation %u is out of turn", static_cast<unsigned long>(n), e.activation);
    was = e.kind == Upcall::activation_blocked ? Last::blocked : Last::other;
  }
  for (uint32_t i = 0; i < g_runtime.processors; ++i)
    for (uint64_t count : g_runtime.processor[i].take_over_latency.count) latencies += count;
  // Each processor may be between the two.
  SIM_CHECK(latencies <= taken && taken <= latencies + g_runtime.processors, "%lu take-overs, %lu latencies",
            static_cast<unsigned long>(taken), static_cast<unsigned long>(latencies));
}

void finish() noexcept {
  g.quiet = true;
  for (int i = 1; i < g_user_count; ++i) {
    Thread* t = thread_of(g_users[i]);
    SIM_CHECK(g_users[i].ended || (t && peek(t->parked)), "thread %d was joined and has not ended", i);
  }
  g_result->hash = g.hash;
  g_result->steps = g.steps;
  g_result->owner_checks = g.owner_checks;
  g_result->quiet_checks = g.quiet_checks;
  check_upcalls();
  auto& c = g_counters;
  g_result->handovers = activation::upcalls(activation::Upcall::activation_blocked);
  g_result->detached = peek(c.detached_by_sentinel) + peek(c.detached_by_monitor);
  g_result->surrendered = peek(c.surrendered);
  g_result->preemptions = activation::upcalls(activation::Upcall::processor_preempted);
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    g_result->reused += g_runtime.processor[i].counters.threads_reused;
    g_result->steals += g_runtime.processor[i].counters.steals;
  }
  if (g_options.report && g_options.trace) dump();
  fflush(stdout);
  _exit(0);
}

}  // namespace upcall::sim
