// Drivers: what is pending with them, and the calls of their functions.
#include "client/driver.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <malloc.h>

#include <new>

#include "client/policy.h"

namespace upcall::client {

void RequestList::insert(upcall_request* r) noexcept {
  upcall_request* before = last;
  while (before && before->priority < r->priority) before = before->previous_;
  r->previous_ = before;
  r->next_ = before ? before->next_ : first;
  (before ? before->next_ : first) = r;
  (r->next_ ? r->next_->previous_ : last) = r;
}

void RequestList::insert_again(upcall_request* r) noexcept {
  upcall_request* after = first;
  while (after && after->priority > r->priority) after = after->next_;
  r->next_ = after;
  r->previous_ = after ? after->previous_ : last;
  (r->previous_ ? r->previous_->next_ : first) = r;
  (after ? after->previous_ : last) = r;
}

void RequestList::remove(upcall_request* r) noexcept {
  (r->previous_ ? r->previous_->next_ : first) = r->next_;
  (r->next_ ? r->next_->previous_ : last) = r->previous_;
  r->next_ = r->previous_ = nullptr;
}

namespace {

// Guards the list of all drivers, for fork's child.
pthread_mutex_t g_all_lock = PTHREAD_MUTEX_INITIALIZER;
upcall_driver* g_all = nullptr;

// Of processes, forked from one another: what was submitted in another one is in no list here.
uint32_t g_generation = 1;

bool is_clock(const upcall_driver* d) noexcept { return d->ops.flags & UPCALL_DEADLINE_IS_END; }
int64_t overdue_result(const upcall_driver* d) noexcept { return is_clock(d) ? 0 : -ETIMEDOUT; }

// Under `lists`.
void enter(upcall_driver* d, upcall_request* r, uint32_t place) noexcept {
  r->place_ = place;
  if (place == place_active) {
    d->active.insert(r);
    ++d->in_device;
  } else {
    d->queued.insert(r);
  }
}

void leave(upcall_driver* d, upcall_request* r) noexcept {
  if (d->cursor == r) d->cursor = r->next_;
  if (r->place_ == place_active) {
    d->active.remove(r);
    --d->in_device;
  } else {
    d->queued.remove(r);
  }
  r->place_ = place_none;
}

// Takes it out for good. False: somebody else has.
bool take_out(upcall_driver* d, upcall_request* r, bool completed) noexcept {
  Lock guard(d->lists);
  if (r->place_ == place_none || r->number_ != g_generation) return false;
  leave(d, r);
  --d->pending;
  d->full = false;
  if (!completed) return true;
  uint64_t now = upcall_now(), took = now - r->submitted_;
  d->typical = d->typical ? d->typical - d->typical / 8 + took / 8 : took;
  d->since = now;
  ++d->completions;
  return true;
}

bool end(upcall_driver* d, upcall_request* r, int64_t result, bool completed) noexcept {
  uintptr_t waiter;
  if (!take_out(d, r, completed) || !claim(r, &waiter)) return false;
  publish(r, waiter, result);
  return true;
}

// Under `lists`: requests wait that the device would take.
bool can_submit(const upcall_driver* d) noexcept {
  return d->queued.first && !d->full && (!d->ops.depth || d->in_device < d->ops.depth);
}
bool has_room_for_queued(upcall_driver* d) noexcept {
  Lock guard(d->lists);
  return can_submit(d);
}

// The queue's first that the device has room for, moved there; null: none.
upcall_request* next_to_submit(upcall_driver* d) noexcept {
  Lock guard(d->lists);
  if (!can_submit(d)) return nullptr;
  upcall_request* r = d->queued.first;
  leave(d, r);
  enter(d, r, place_active);
  return r;
}

void back_to_queue(upcall_driver* d, upcall_request* r) noexcept {
  Lock guard(d->lists);
  if (r->place_ != place_active) return;
  d->active.remove(r);
  --d->in_device;
  r->place_ = place_queued;
  d->queued.insert_again(r);
  d->full = true;
}

// What call-backs submit meanwhile is not looked at by the walk that has called them.
uint32_t at_most(upcall_driver* d, const uint32_t& count) noexcept {
  Lock guard(d->lists);
  return count;
}

void fail_all(upcall_driver* d, int64_t error) noexcept {
  for (uint32_t left = at_most(d, d->in_device); left; --left) {
    upcall_request* r;
    {
      Lock guard(d->lists);
      r = d->active.first;
    }
    if (!r) return;
    count(Count::refusal);
    end(d, r, error, false);
  }
}

// With `calls` held. The device is told to forget it.
int forget(upcall_driver* d, upcall_request* r, int64_t result) noexcept {
  bool in_device;
  {
    Lock guard(d->lists);
    if (r->place_ == place_none) return EALREADY;
    in_device = r->place_ == place_active;
  }
  if (in_device) {
    if (d->ops.cancel) {
      if (d->ops.cancel(d->context, r)) return EBUSY;
    } else if (d->ops.poll_group || d->ops.submit) {
      return ENOTSUP;
    }
  }
  return end(d, r, result, false) ? 0 : EALREADY;
}

// With `calls` held.
void expire_due(upcall_driver* d) noexcept {
  constexpr uint64_t again = 1'000'000;  // what the device does not let go
  uint64_t now = upcall_now();
  uint32_t left;
  {
    Lock guard(d->lists);
    if (d->next_deadline > now) return;
    d->next_deadline = UPCALL_FOREVER;
    left = 2 * d->pending;
  }
  RequestList* const both[] = {&d->queued, &d->active};
  for (RequestList* list : both) {
    pthread_mutex_lock(&d->lists);
    d->cursor = list->first;
    while (upcall_request* r = left ? d->cursor : nullptr) {
      --left;
      d->cursor = r->next_;
      if (r->deadline && r->deadline <= now) {
        pthread_mutex_unlock(&d->lists);
        int error = forget(d, r, overdue_result(d));
        pthread_mutex_lock(&d->lists);
        if (error == EBUSY && now + again < d->next_deadline) d->next_deadline = now + again;
      } else if (r->deadline && r->deadline < d->next_deadline) {
        d->next_deadline = r->deadline;
      }
    }
    if (!left) d->next_deadline = now;  // more has come
    pthread_mutex_unlock(&d->lists);
  }
}

void poll_each(upcall_driver* d) noexcept {
  pthread_mutex_lock(&d->lists);
  d->cursor = d->active.first;
  for (uint32_t left = d->in_device; left && d->cursor; --left) {
    upcall_request* r = d->cursor;
    d->cursor = r->next_;
    pthread_mutex_unlock(&d->lists);
    int answer = d->ops.poll(d->context, r);
    if (answer == 1) {
      end(d, r, r->result, true);
    } else if (answer) {
      count(Count::refusal);
      end(d, r, answer < 0 ? answer : -EIO, false);  // an answer that means nothing
    }
    pthread_mutex_lock(&d->lists);
  }
  pthread_mutex_unlock(&d->lists);
}

// fork's child has none of the threads that looked after the requests, nor the clients that wait for them.
void forget_in_child() {
  for (upcall_driver* d = g_all; d; d = d->next_driver) {
    d->calls = d->lists = PTHREAD_MUTEX_INITIALIZER;
    d->work = PTHREAD_COND_INITIALIZER;
    sem_init(&d->kick, 0, 0);
    d->queued = d->active = RequestList();
    d->cursor = nullptr;
    d->in_device = d->pending = 0;
    d->next_deadline = UPCALL_FOREVER;
    d->full = d->has_poller = d->stop = false;
    d->blocking.store(0, relaxed);
    d->users.store(0, relaxed);
  }
  ++g_generation;
}
void lock_for_fork() { pthread_mutex_lock(&g_all_lock); }
void unlock_after_fork() { pthread_mutex_unlock(&g_all_lock); }
void unlock_in_child() {
  forget_in_child();
  g_all_lock = PTHREAD_MUTEX_INITIALIZER;
}

void list_driver(upcall_driver* d) noexcept {
  static bool told = false;
  Lock guard(g_all_lock);
  if (!told) told = pthread_atfork(lock_for_fork, unlock_after_fork, unlock_in_child) == 0;
  d->next_driver = g_all;
  g_all = d;
}

void unlist_driver(upcall_driver* d) noexcept {
  Lock guard(g_all_lock);
  for (upcall_driver** at = &g_all; *at; at = &(*at)->next_driver)
    if (*at == d) {
      *at = d->next_driver;
      return;
    }
}

// Under `lists`.
int ensure_poller(upcall_driver* d) noexcept {
  if (d->has_poller) return 0;
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&d->poller, nullptr, run_poller, d);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  d->has_poller = !error;
  return error;
}

}  // namespace

void kick_poller(upcall_driver* d) noexcept {
  if (d->blocking.load(fenced)) d->ops.wake(d->context);  // pairs with block()
  sem_post(&d->kick);
}

void submit_queued(upcall_driver* d) noexcept {
  uint32_t left = at_most(d, d->pending);
  while (upcall_request* r = left ? next_to_submit(d) : nullptr) {
    --left;
    int error = d->ops.submit(d->context, r);
    if (error == EAGAIN) {
      back_to_queue(d, r);
      return;
    }
    if (error) {
      count(Count::refusal);
      end(d, r, -error, false);
      continue;
    }
    d->submissions.fetch_add(1, fenced);  // pairs with block()
    if (d->blocking.load(fenced) && !(d->ops.flags & UPCALL_WAIT_SEES_NEW)) d->ops.wake(d->context);
  }
  if (!left && has_room_for_queued(d)) sem_post(&d->kick);  // call-backs have submitted more: the poller's
}

uint32_t look(upcall_driver* d) noexcept {
  uint64_t before;
  bool any;
  {
    Lock guard(d->lists);
    before = d->completions;
    if (!d->in_device) d->full = false;
  }
  expire_due(d);
  if (d->ops.submit) submit_queued(d);
  {
    Lock guard(d->lists);
    any = d->in_device != 0;
  }
  if (any && d->ops.poll_group) {
    if (int error = d->ops.poll_group(d->context)) fail_all(d, error < 0 ? error : -EIO);
  } else if (any && d->ops.poll) {
    poll_each(d);
  }
  count(Count::poll);
  if (d->ops.submit) submit_queued(d);
  Lock guard(d->lists);
  return static_cast<uint32_t>(d->completions - before);
}

void release_calls(upcall_driver* d) noexcept {
  for (;;) {
    pthread_mutex_unlock(&d->calls);
    // Its lock pairs with upcall_submit's: a request is in the queue before `calls` is tried.
    if (!has_room_for_queued(d)) return;
    if (d->ops.flags & UPCALL_SUBMIT_LATER) {
      kick_poller(d);
      return;
    }
    if (pthread_mutex_trylock(&d->calls)) return;
    submit_queued(d);
  }
}

void try_look(upcall_driver* d) noexcept {
  NoCancel guard;
  Use use(d);
  if (pthread_mutex_trylock(&d->calls)) return;
  look(d);
  release_calls(d);
}

void try_expire(upcall_driver* d, upcall_request* r, uint64_t now) noexcept {
  Use use(d);
  if (pthread_mutex_trylock(&d->calls)) return;
  if (r->deadline <= now) forget(d, r, overdue_result(d));
  release_calls(d);
}

int cancel(upcall_driver* d, upcall_request* r) noexcept {
  if (is_complete(r)) return EALREADY;
  if (r->number_ != g_generation) {  // the parent's, before a fork
    uintptr_t waiter;
    if (!claim(r, &waiter)) return EALREADY;
    publish(r, 0, -ECANCELED);
    return 0;
  }
  Use use(d);
  pthread_mutex_lock(&d->calls);
  int error = forget(d, r, -ECANCELED);
  release_calls(d);
  return error;
}

}  // namespace upcall::client

using namespace upcall::client;  // NOLINT: what follows are the public names
using upcall::fenced;
using upcall::relaxed;

extern "C" {

__attribute__((visibility("default"))) int upcall_driver_register(upcall_driver** driver,
                                                                  const upcall_driver_ops* ops,
                                                                  void* context) {
  if (!ops || ops->size != sizeof *ops) return EINVAL;
  if (!ops->poll && !ops->poll_group && !(ops->flags & UPCALL_DEADLINE_IS_END)) return EINVAL;
  if (ops->wait_group && !ops->wake) return EINVAL;
  if ((ops->flags & UPCALL_DEADLINE_IS_END) && !ops->cancel && (ops->submit || ops->poll_group))
    return EINVAL;
  auto* d = static_cast<upcall_driver*>(malloc(sizeof(upcall_driver)));
  if (!d) return ENOMEM;
  new (d) upcall_driver;
  d->ops = *ops;
  d->context = context;
  d->typical = ops->typical;
  d->poll_cost = ops->poll_cost;
  sem_init(&d->kick, 0, 0);
  list_driver(d);
  *driver = d;
  return 0;
}

__attribute__((visibility("default"))) int upcall_driver_unregister(upcall_driver* d) {
  NoCancel guard;
  bool join;
  {
    Lock lists(d->lists);
    if (d->pending) return EBUSY;
    d->stop = true;
    join = d->has_poller;
    pthread_cond_signal(&d->work);
  }
  kick_poller(d);
  if (join) pthread_join(d->poller, nullptr);
  // acquire: pairs with ~Use. Whoever has completed the last request may still be on its way out.
  while (d->users.load(upcall::acquire)) sched_yield();
  unlist_driver(d);
  free(d);
  return 0;
}

__attribute__((visibility("default"))) int upcall_submit(upcall_driver* d, upcall_request* r) {
  uintptr_t s = state_of(r).load(relaxed);
  if (s != state_idle && s != state_complete) return EINVAL;
  if (!d) {
    if (r->deadline) return ENOTSUP;  // nobody looks after it
    if (r->driver_) r->driver_ = nullptr;
    state_of(r).store(state_pending, upcall::release);  // pairs with claim and attach
    return 0;
  }
  if (d->ops.flags & UPCALL_DEADLINE_IS_END
          ? !r->deadline
          : r->deadline && !d->ops.cancel && (d->ops.poll_group || d->ops.submit))
    return d->ops.flags & UPCALL_DEADLINE_IS_END ? EINVAL : ENOTSUP;
  NoCancel guard;
  Use use(d);
  r->driver_ = d;
  r->number_ = g_generation;
  r->submitted_ = upcall_now();
  bool handed = d->ops.submit;
  {
    Lock lists(d->lists);
    if (int error = ensure_poller(d)) return error;
    state_of(r).store(state_pending, upcall::release);
    if (!d->pending++) {
      d->since = r->submitted_;
      pthread_cond_signal(&d->work);
    }
    if (r->deadline && r->deadline < d->next_deadline) d->next_deadline = r->deadline;
    enter(d, r, handed ? place_queued : place_active);
  }
  count(Count::request);
  uint64_t deadline = r->deadline;  // from here on it may be complete, and gone
  bool later = handed && (d->ops.flags & UPCALL_SUBMIT_LATER);
  if (handed && !later && pthread_mutex_trylock(&d->calls) == 0) {
    submit_queued(d);
    release_calls(d);
  }
  if (!handed) d->submissions.fetch_add(1, fenced);  // pairs with block()
  bool unseen = !handed && d->blocking.load(fenced) && !(d->ops.flags & UPCALL_WAIT_SEES_NEW);
  // fenced: pairs with the poller, which stores it and then looks at next_deadline.
  if (later || unseen || (deadline && deadline < d->parked_until.load(fenced))) kick_poller(d);
  return 0;
}

__attribute__((visibility("default"))) int upcall_complete(upcall_request* r, int64_t result) {
  if (upcall_driver* d = r->driver_) return end(d, r, result, true) ? 0 : EALREADY;
  uintptr_t waiter;
  if (!claim(r, &waiter)) return EALREADY;
  publish(r, waiter, result);
  return 0;
}

}  // extern "C"
