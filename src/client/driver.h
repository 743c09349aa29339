// What the files of this folder know of a driver and of who waits. See upcall/event.h for the contract.
//
// Locks, in this order: a driver's `calls` (held around its call-backs but wait_group and wake), then its `lists`. Neither is
// held while a thread waits for a request. A request in a list is taken out under `lists` by whoever ends it; that one alone
// makes it complete.
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include "base/atomic.h"
#include "upcall/event.h"

namespace upcall::client {

// upcall_request::state_; anything else is the Waiter that waits for it. completing: its result is being written.
inline constexpr uintptr_t state_idle = 0, state_pending = 1, state_complete = 2, state_completing = 3;
// upcall_request::place_
inline constexpr uint32_t place_none = 0, place_queued = 1, place_active = 2;

inline atomic<uintptr_t>& state_of(upcall_request* r) noexcept {
  return *reinterpret_cast<atomic<uintptr_t>*>(&r->state_);
}
inline bool is_complete(upcall_request* r) noexcept {
  return state_of(r).load(acquire) == state_complete;  // pairs with publish
}

// By priority, then by age.
struct RequestList {
  upcall_request* first = nullptr;
  upcall_request* last = nullptr;
  void insert(upcall_request* r) noexcept;
  void insert_again(upcall_request* r) noexcept;  // the first of its priority: it was
  void remove(upcall_request* r) noexcept;
};

class Lock {
 public:
  explicit Lock(pthread_mutex_t& m) noexcept : m_(m) { pthread_mutex_lock(&m_); }
  ~Lock() { pthread_mutex_unlock(&m_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& m_;
};

class Use {
 public:
  explicit Use(upcall_driver* d) noexcept;
  ~Use();
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  upcall_driver* d_;
};

// A cancelled thread must not leave locks behind, or a waiter on a stack that is gone.
class NoCancel {
 public:
  NoCancel() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { pthread_setcancelstate(before_, &before_); }
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int before_ = 0;
};

}  // namespace upcall::client

struct upcall_driver {
  upcall_driver_ops ops = {};
  void* context = nullptr;
  upcall_driver* next_driver = nullptr;

  pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER;

  pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;
  // Guarded by `lists`.
  upcall::client::RequestList queued;  // for the device to have room
  upcall::client::RequestList active;  // in the device, or with nothing to be handed to
  upcall_request* cursor = nullptr;    // of the walk of look(): the next to be looked at
  uint32_t in_device = 0, pending = 0;
  uint64_t next_deadline = UPCALL_FOREVER;  // none is earlier
  uint64_t since = 0;                       // when the last one was completed, or the first became pending
  uint64_t completions = 0;
  uint64_t typical = 0;  // moving average
  bool full = false;  // it has said EAGAIN: until something is complete, or the next look if it has nothing
  bool has_poller = false, stop = false;
  pthread_t poller = {};
  pthread_cond_t work = PTHREAD_COND_INITIALIZER;  // the poller waits there while nothing is pending

  // The poller's.
  uint64_t poll_cost = 0, interval = 0;
  uint32_t vain_waits = 0;  // times in a row that wait_group returned and a look found nothing
  upcall::atomic<bool> cannot_block{false};
  // Until then it looks at nothing; `kick` and `wake` end it.
  upcall::atomic<uint64_t> parked_until{0};
  upcall::atomic<uint32_t> blocking{0};
  upcall::atomic<uint32_t> submissions{0};
  upcall::atomic<uint32_t> users{
      0};  // threads inside of functions that were given the driver: unregister waits for them
  sem_t kick = {};
};

namespace upcall::client {

inline Use::Use(upcall_driver* d) noexcept : d_(d) { d_->users.fetch_add(1, relaxed); }
// release: pairs with upcall_driver_unregister.
inline Use::~Use() { d_->users.fetch_sub(1, release); }

// --- request.cc
// `r` is in no list any more, or never was.
bool claim(upcall_request* r, uintptr_t* waiter) noexcept;
void publish(upcall_request* r, uintptr_t waiter, int64_t result) noexcept;

// --- driver.cc
// With `calls` held: submits what the device has room for.
void submit_queued(upcall_driver* d) noexcept;
// With `calls` held: one round of polling, what is overdue first. How many requests were completed.
uint32_t look(upcall_driver* d) noexcept;
// Gives `calls` back; what has come to the queue meanwhile is submitted.
void release_calls(upcall_driver* d) noexcept;
// If nobody is at it.
void try_look(upcall_driver* d) noexcept;
// If nobody is at it: fails it, or ends it, if it is past its deadline.
void try_expire(upcall_driver* d, upcall_request* r, uint64_t now) noexcept;
int cancel(upcall_driver* d, upcall_request* r) noexcept;
void kick_poller(upcall_driver* d) noexcept;

// --- poller.cc
void* run_poller(void* driver);

// --- host.cc: the runtime, if it runs the process
struct Load {
  uint32_t idle_processors, ready_threads;
};
Load load_now() noexcept;
// Until a processor is idle, has switched for a while, at a tick, or at `until`. False: there are no hooks.
bool wait_for_hook(uint64_t until) noexcept;
enum class Count : uint8_t { request, poll, hook, sleep, block, refusal };
void count(Count what) noexcept;

}  // namespace upcall::client
