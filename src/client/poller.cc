// A driver's poller: a thread like the program's own, so that call-backs find thread-local variables, a stack and locks as
// usual. It sleeps while nothing is pending; else it looks, and decides what to do until it looks again.
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "client/driver.h"
#include "client/policy.h"

namespace upcall::client {

namespace {

// Waits of wait_group in a row after which a look found nothing: it does not wait, whatever it says.
constexpr uint32_t most_vain_waits = 16;

upcall_situation situation(upcall_driver* d, uint32_t completed) noexcept {
  Load load = load_now();
  Lock guard(d->lists);
  upcall_situation s = {};
  s.pending = d->in_device;
  s.completed = completed;
  s.idle_processors = load.idle_processors;
  s.ready_threads = load.ready_threads;
  s.since = upcall_now() - d->since;
  s.typical = d->typical;
  s.poll_cost = d->poll_cost;
  s.can_block = d->ops.wait_group && !d->cannot_block.load(relaxed) && d->vain_waits < most_vain_waits;
  return s;
}

bool is_action(upcall_action a) noexcept { return a >= UPCALL_POLL_AGAIN && a <= UPCALL_BLOCK; }

upcall_action choose(upcall_driver* d, const upcall_situation& s) noexcept {
  upcall_action usual = decide(s);
  if (!d->ops.poll && !d->ops.poll_group) return UPCALL_SLEEP;  // deadlines alone
  if (!s.pending) return UPCALL_SLEEP;  // a device that has nothing, and takes nothing
  if (!d->ops.strategy) return usual;
  upcall_action wish = d->ops.strategy(d->context, &s, usual);
  return is_action(wish) && (wish != UPCALL_BLOCK || s.can_block) ? wish : usual;
}

// Nothing is to be looked at before; what comes with an earlier deadline, or is to be submitted, kicks.
uint64_t park(upcall_driver* d, uint64_t longest) noexcept {
  uint64_t until = upcall_now();
  until = longest < UPCALL_FOREVER - until ? until + longest : UPCALL_FOREVER;
  d->parked_until.store(until, fenced);  // pairs with upcall_submit: it sees this, or we see its deadline
  Lock guard(d->lists);
  bool waits_for_room = d->full || (d->ops.depth && d->in_device >= d->ops.depth);
  if (d->stop || (d->queued.first && !waits_for_room)) return 0;
  return d->next_deadline < until ? d->next_deadline : until;
}

void nap(upcall_driver* d, uint64_t until) noexcept {
  timespec t = {static_cast<time_t>(until / 1'000'000'000u), static_cast<long>(until % 1'000'000'000u)};
  int r;
  do {
    r = until == UPCALL_FOREVER ? sem_wait(&d->kick) : sem_clockwait(&d->kick, CLOCK_MONOTONIC, &t);
  } while (r && errno == EINTR);
  while (!sem_trywait(&d->kick)) {
  }
}

void sleep_a_while(upcall_driver* d) noexcept {
  count(Count::sleep);
  bool clock = !d->ops.poll && !d->ops.poll_group;
  uint64_t doubled = d->interval * 2;
  d->interval = doubled < shortest_sleep ? shortest_sleep : doubled < longest_sleep ? doubled : longest_sleep;
  if (uint64_t until = park(d, clock ? UPCALL_FOREVER : d->interval)) nap(d, until);
  d->parked_until.store(0, relaxed);
}

void wait_at_hook(upcall_driver* d) noexcept {
  constexpr uint64_t longest = 10'000'000;
  count(Count::hook);
  uint64_t until = park(d, longest);
  if (until && !wait_for_hook(until)) {
    uint64_t soon = upcall_now() + shortest_sleep;
    nap(d, soon < until ? soon : until);
  }
  d->parked_until.store(0, relaxed);
}

// `submissions`: as they were before the last look.
void block(upcall_driver* d, uint32_t submissions) noexcept {
  constexpr uint64_t at_once = 50'000;
  // Before park's look at the lists. fenced: pairs with submit_queued and kick_poller: they see it, or we see what they did.
  d->blocking.store(1, fenced);
  uint64_t until = park(d, UPCALL_FOREVER), begun = upcall_now();
  if (until > begun && submissions == d->submissions.load(fenced)) {
    count(Count::block);
    int r = d->ops.wait_group(d->context, until == UPCALL_FOREVER ? until : until - begun);
    if (r && r != -EINTR) {
      d->cannot_block.store(true, relaxed);
      count(Count::refusal);
    }
    // Until a look finds something, or it does wait.
    d->vain_waits = upcall_now() - begun < at_once ? d->vain_waits + 1 : 0;
  }
  d->blocking.store(0, fenced);
  d->parked_until.store(0, relaxed);
}

uint32_t timed_look(upcall_driver* d) noexcept {
  uint64_t start = upcall_now();
  Lock guard(d->calls);
  uint32_t completed = look(d);
  uint64_t cost = upcall_now() - start;
  d->poll_cost = d->poll_cost ? d->poll_cost - d->poll_cost / 8 + cost / 8 : cost;
  return completed;
}

void one_round(upcall_driver* d) noexcept {
  uint32_t submissions = d->submissions.load(fenced);
  uint32_t completed = timed_look(d);
  if (completed) d->vain_waits = 0, d->interval = 0;
  upcall_situation s = situation(d, completed);
  switch (choose(d, s)) {
    case UPCALL_POLL_AGAIN:
      if (s.ready_threads)
        sched_yield();
      else
        __builtin_ia32_pause();
      break;
    case UPCALL_POLL_AT_HOOK:
      wait_at_hook(d);
      break;
    case UPCALL_SLEEP:
      sleep_a_while(d);
      break;
    case UPCALL_BLOCK:
      block(d, submissions);
      break;
  }
}

// False: it is to end, also when nothing has been pending for a while: it keeps the process alive.
bool wait_for_work(upcall_driver* d) noexcept {
  constexpr time_t patience = 1;
  timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += patience;
  Lock guard(d->lists);
  int r = 0;
  while (!d->stop && !d->pending && !r)
    r = pthread_cond_clockwait(&d->work, &d->lists, CLOCK_MONOTONIC, &until);
  if (d->stop) return false;
  if (d->pending) return true;
  d->has_poller = false;
  pthread_detach(pthread_self());
  return false;
}

}  // namespace

void* run_poller(void* driver) {
  auto* d = static_cast<upcall_driver*>(driver);
  NoCancel guard;
  Use use(d);
  while (wait_for_work(d)) one_round(d);
  return nullptr;
}

}  // namespace upcall::client
