// Requests: being waited for and being completed.
//
// One word says where a request stands. A waiter puts its address there, and takes it back before it leaves; where that fails
// somebody is completing the request and will post to the waiter, which stays until it has.
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "client/driver.h"

namespace upcall::client {

namespace {

struct Waiter {
  sem_t posts;
  uint32_t taken = 0;
};

uint64_t now() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// False: that time has come.
bool take_post(Waiter* w, uint64_t until) noexcept {
  int r;
  timespec t = {static_cast<time_t>(until / 1'000'000'000u), static_cast<long>(until % 1'000'000'000u)};
  do {
    r = until == UPCALL_FOREVER ? sem_wait(&w->posts) : sem_clockwait(&w->posts, CLOCK_MONOTONIC, &t);
  } while (r && errno == EINTR);
  if (r) return false;
  ++w->taken;
  return true;
}

struct Requests {
  upcall_request* const* at;
  size_t count;
};

// The complete one that comes first. One that is being completed is waited for: its result is being written.
bool choose(const Requests& all, size_t* which) noexcept {
  upcall_request* best = nullptr;
  for (size_t i = 0; i < all.count; ++i) {
    upcall_request* r = all.at[i];
    if (!r) continue;
    uintptr_t s;
    while ((s = state_of(r).load(acquire)) == state_completing) sched_yield();
    if (s != state_complete || (best && best->priority >= r->priority)) continue;
    best = r;
    *which = i;
  }
  return best != nullptr;
}

// 0, EBUSY, EINVAL, or EALREADY: one is complete. *attached: so many entries were gone through.
int attach(const Requests& all, Waiter* w, size_t* attached) noexcept {
  bool any = false;
  for (size_t& i = *attached; i < all.count; ++i) {
    upcall_request* r = all.at[i];
    if (!r) continue;
    any = true;
    uintptr_t s = state_pending;
    // acq_rel: pairs with claim, which posts to the waiter that it finds.
    if (state_of(r).compare_exchange_strong(s, reinterpret_cast<uintptr_t>(w), acq_rel, acquire)) continue;
    if (s == state_complete || s == state_completing) return EALREADY;
    return s == state_idle ? EINVAL : EBUSY;
  }
  return any ? 0 : EINVAL;
}

void detach(const Requests& all, Waiter* w, size_t attached) noexcept {
  uint32_t owed = 0;
  for (size_t i = 0; i < attached; ++i) {
    if (!all.at[i]) continue;
    auto mine = reinterpret_cast<uintptr_t>(w);
    if (!state_of(all.at[i]).compare_exchange_strong(mine, state_pending, acq_rel, acquire)) ++owed;
  }
  while (w->taken < owed) take_post(w, UPCALL_FOREVER);
}

uint64_t first_deadline(const Requests& all, uint64_t until) noexcept {
  for (size_t i = 0; i < all.count; ++i)
    if (upcall_request* r = all.at[i]; r && r->driver_ && r->deadline && r->deadline < until)
      until = r->deadline;
  return until;
}

// The poller does so, too, unless a driver's call keeps it. When to come again.
uint64_t expire_overdue(const Requests& all, uint64_t until) noexcept {
  constexpr uint64_t pause = 1'000'000;  // the device does not let it go yet, or somebody is at it
  uint64_t t = now(), later = until;
  for (size_t i = 0; i < all.count; ++i) {
    upcall_request* r = all.at[i];
    if (!r || !r->driver_ || !r->deadline || is_complete(r)) continue;
    uint64_t again = r->deadline;
    if (r->deadline <= t) {
      try_expire(r->driver_, r, t);
      again = t + pause;
    }
    if (again < later) later = again;
  }
  return later;
}

void wait_attached(const Requests& all, Waiter* w, uint64_t until) noexcept {
  uint64_t limit = first_deadline(all, until);
  while (!take_post(w, limit)) {
    if (limit == until) return;
    limit = expire_overdue(all, until);
  }
}

}  // namespace

bool claim(upcall_request* r, uintptr_t* waiter) noexcept {
  uintptr_t s = state_of(r).load(relaxed);
  do {
    if (s == state_idle || s == state_complete || s == state_completing) return false;
    // acq_rel: pairs with attach and detach.
  } while (!state_of(r).compare_exchange_weak(s, state_completing, acq_rel, relaxed));
  *waiter = s == state_pending ? 0 : s;
  return true;
}

// From the store on the request may be gone, unless it belongs to its call-back.
void publish(upcall_request* r, uintptr_t waiter, int64_t result) noexcept {
  auto* call_back = r->completed;
  r->result = result;
  state_of(r).store(state_complete, release);  // pairs with is_complete and choose
  if (waiter) sem_post(&reinterpret_cast<Waiter*>(waiter)->posts);
  if (call_back) call_back(r);
}

}  // namespace upcall::client

using namespace upcall::client;  // NOLINT: what follows are the public names
using upcall::relaxed;

extern "C" {
__attribute__((visibility("default"))) uint64_t upcall_now() { return now(); }

__attribute__((visibility("default"))) int upcall_test(upcall_request* r) {
  if (is_complete(r)) return 1;
  if (r->driver_) try_look(r->driver_);
  return is_complete(r) ? 1 : 0;
}

__attribute__((visibility("default"))) int upcall_wait_any(upcall_request* const* requests, size_t n,
                                                           uint64_t until, size_t* which) {
  Requests all = {requests, n};
  size_t chosen = 0;
  bool found = choose(all, &chosen);
  upcall_driver* looked = nullptr;
  for (size_t i = 0; i < n && !found; ++i) {
    if (!requests[i] || !requests[i]->driver_ || requests[i]->driver_ == looked) continue;
    looked = requests[i]->driver_;
    try_look(looked);
    found = choose(all, &chosen);
  }
  int error = 0;
  if (!found) {
    NoCancel guard;
    Waiter w;
    sem_init(&w.posts, 0, 0);
    size_t attached = 0;
    error = attach(all, &w, &attached);
    if (!error) wait_attached(all, &w, until);
    detach(all, &w, attached);
    if (error == EALREADY) error = 0;
    found = !error && choose(all, &chosen);
  }
  if (found && which) *which = chosen;
  return found ? 0 : error ? error : ETIMEDOUT;
}

__attribute__((visibility("default"))) int upcall_wait(upcall_request* r, uint64_t until) {
  if (is_complete(r)) return 0;
  return upcall_wait_any(&r, 1, until, nullptr);
}

__attribute__((visibility("default"))) int upcall_cancel(upcall_request* r) {
  NoCancel guard;
  if (r->driver_) return cancel(r->driver_, r);
  uintptr_t waiter;
  if (!claim(r, &waiter)) {
    while (state_of(r).load(upcall::acquire) == state_completing)
      sched_yield();  // its result is being written
    return state_of(r).load(relaxed) == state_idle ? EINVAL : EALREADY;
  }
  publish(r, waiter, -ECANCELED);
  return 0;
}

}  // extern "C"
