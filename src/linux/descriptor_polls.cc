// Threads that wait for several descriptors at once: a link in the list of each of them.
//
// The links lie in a page of the thread's. Each holds the word that the thread's wait will have; they are put into the lists
// before the wait has it, and an edge that is counted in between is found by a second look at the counts, under the same
// locks. Whoever ends the wait, by an edge, a time-out or a signal, leaves the links where they are: with their word nobody
// can claim anything any more. The thread itself takes them out, when it polls again or ends.
#include "activation/event_source.h"
#include "kernel/memory.h"
#include "linux/descriptors.h"

namespace upcall::linux_abi {

struct PollLink {
  PollLink *next, *previous;
  Thread* thread;
  uint64_t word;
  Descriptor* d;  // null: in no list
  Direction direction;
};

namespace {

constexpr uint64_t page = 4096;
static_assert(most_polled * sizeof(PollLink) <= page);

Side& side(PollLink* l) noexcept { return l->d->of(l->direction); }

void take_out(PollLink* l) noexcept {
  LockGuard guard(side(l).waiting.lock);
  (l->previous ? l->previous->next : side(l).polls) = l->next;
  if (l->next) l->next->previous = l->previous;
}

void drop_links(Thread* t) noexcept {
  auto* links = static_cast<PollLink*>(t->poll_links);
  for (uint32_t i = 0; links && i < most_polled && links[i].d; ++i) {
    take_out(&links[i]);
    links[i].d = nullptr;
  }
}

// False: there has been an edge since.
bool put_in(PollLink* l, const DescriptorWait& wait) noexcept {
  l->d = wait.d;
  l->direction = wait.direction;
  LockGuard guard(side(l).waiting.lock);
  if (edges(wait.d, wait.direction) != wait.seen) {
    l->d = nullptr;
    return false;
  }
  l->previous = nullptr;
  l->next = side(l).polls;
  if (l->next) l->next->previous = l;
  side(l).polls = l;
  return true;
}

bool any_edge(const DescriptorWait* waits, uint32_t n) noexcept {
  for (uint32_t i = 0; i < n; ++i) {
    Descriptor* d = waits[i].d;
    LockGuard guard(d->of(waits[i].direction).waiting.lock);
    if (edges(d, waits[i].direction) != waits[i].seen) return true;
  }
  return false;
}

// The word of the wait; 0: no memory. It is in a bucket of its own only so that time-outs and signals find it in one.
uint64_t begin(Thread* t, const DescriptorWait& how) noexcept {
  constexpr uint64_t beyond_descriptors = 1ull << 40;
  t->wait_key = key_of((beyond_descriptors | t->slot) << 2, KeyKind::descriptor);
  t->wait_bits = 0;
  t->rax = 0;  // until somebody ends the wait: unlink_waiter looks at it
  t->timeout_result = how.timeout_result;
  t->interrupted_call = how.interrupted;
  Bucket& b = bucket_of(t->wait_key);
  LockGuard guard(b.lock);
  activation::g_event_waits.fetch_add(1, relaxed);
  uint64_t word = begin_bucket_wait<sched::begin_wait>(b, t, how.deadline);
  if (!word) activation::g_event_waits.fetch_sub(1, relaxed);
  return word;
}

}  // namespace

Descriptor* first_polled(const Thread* t) noexcept {
  const auto* links = static_cast<const PollLink*>(t->poll_links);
  return links && links[0].word == (t->wait_word.load(relaxed) | 1) ? links[0].d : nullptr;
}

uint32_t claim_polls(PollLink* list, Thread** claimed, uint32_t most) noexcept {
  uint32_t n = 0;
  for (PollLink* l = list; l && n < most; l = l->next)
    if (sched::claim_wait(l->thread, l->word)) claimed[n++] = l->thread;
  return n;
}

Thread* wait_for_edges(Thread* t, const DescriptorWait* waits, uint32_t n, bool* refused) noexcept {
  Activation* a = activation::self();
  for (uint32_t i = 0; i < n; ++i)
    if (!be_watched(waits[i], refused)) return nullptr;
  if (!t->poll_links && !(t->poll_links = kernel::map_pages(page))) {
    *refused = true;
    return nullptr;
  }
  drop_links(t);
  activation::save_for_switch(t);
  auto* links = static_cast<PollLink*>(t->poll_links);
  for (uint32_t i = 0; i < n; ++i) {
    links[i].thread = t;
    links[i].word = sched::next_wait_word(t);
    if (put_in(&links[i], waits[i])) continue;
    drop_links(t);
    return nullptr;
  }
  uint64_t word = begin(t, waits[0]);
  if (!word) {
    drop_links(t);
    return answer(t, -e_nomem);
  }
  // From here on the thread may run elsewhere, unless this claims its wait.
  if (any_edge(waits, n) && sched::claim_wait(t, word)) {
    unlink_waiter(t);
    if (sched::is_armed(t)) t->timers->cancel(t);
    t->state.store(sched::State::running, relaxed);
    drop_links(t);
    return nullptr;
  }
  ++a->processor->counters.event_waits;
  return wait_in_bucket(a, t, word);
}

void end_waits(Thread* t) noexcept {
  Beginning last = begin_call(t);
  end_try(&last);
  if (last.is_handed && last.handed >= 0) kernel::sys(__NR_close, last.handed);
  if (!t->poll_links) return;
  drop_links(t);
  kernel::unmap_pages(t->poll_links, page);
  t->poll_links = nullptr;
}

void forget_polls(Thread* t) noexcept {
  auto* links = static_cast<PollLink*>(t->poll_links);
  for (uint32_t i = 0; links && i < most_polled; ++i) links[i].d = nullptr;
}

}  // namespace upcall::linux_abi
