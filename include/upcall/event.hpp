// Requests and drivers (upcall/event.h) for C++.
#pragma once

#include <upcall/event.h>

#include <chrono>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace upcall {

using time_point = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// Throws what upcall/event.h returns as an error number.
inline void check(int error, const char* what) {
  if (error) throw std::system_error(error, std::generic_category(), what);
}

inline uint64_t nanoseconds(time_point t) {
  return t.time_since_epoch().count() < 0 ? 0 : static_cast<uint64_t>(t.time_since_epoch().count());
}

// A request that is over before it goes: the destructor cancels it, or waits for it.
class request {
 public:
  request() = default;
  explicit request(void* data, int priority = 0) {
    raw_.data = data;
    raw_.priority = priority;
  }
  request(const request&) = delete;
  request& operator=(const request&) = delete;
  ~request() {
    if (raw_.state_ && !upcall_test(&raw_) && upcall_cancel(&raw_)) upcall_wait(&raw_, UPCALL_FOREVER);
  }

  void deadline(time_point t) { raw_.deadline = nanoseconds(t); }
  void submit(upcall_driver* driver) { check(upcall_submit(driver, &raw_), "upcall_submit"); }
  void submit_descriptor(int descriptor, short events) {
    check(upcall_submit_descriptor(&raw_, descriptor, events), "upcall_submit_descriptor");
  }
  void submit_child(pid_t child) { check(upcall_submit_child(&raw_, child), "upcall_submit_child"); }
  void complete(int64_t result = 0) { upcall_complete(&raw_, result); }
  bool test() { return upcall_test(&raw_) == 1; }
  // The result; what the driver says as -errno is thrown.
  int64_t wait() {
    check(upcall_wait(&raw_, UPCALL_FOREVER), "upcall_wait");
    if (raw_.result < 0) check(static_cast<int>(-raw_.result), "request");
    return raw_.result;
  }
  // The result, errors as -errno among them; nothing: that time has come.
  std::optional<int64_t> wait_until(time_point t) {
    int error = upcall_wait(&raw_, nanoseconds(t));
    if (error == ETIMEDOUT) return std::nullopt;
    check(error, "upcall_wait");
    return raw_.result;
  }
  int cancel() { return upcall_cancel(&raw_); }
  upcall_request* raw() { return &raw_; }

 private:
  upcall_request raw_ = {};
};

// A driver made of an object with the members that it needs of
//   int submit(upcall_request*), poll(upcall_request*), poll_group(), wait_group(uint64_t ns), cancel(upcall_request*);
//   void wake(); upcall_action strategy(const upcall_situation&, upcall_action usual)
template <typename D>
class driver {
 public:
  explicit driver(D& object, upcall_driver_ops hints = {}) {
    hints.size = sizeof hints;
    if constexpr (requires(upcall_request * r) { object.submit(r); })
      hints.submit = [](void* d, upcall_request* r) { return of(d).submit(r); };
    if constexpr (requires(upcall_request * r) { object.poll(r); })
      hints.poll = [](void* d, upcall_request* r) { return of(d).poll(r); };
    if constexpr (requires { object.poll_group(); })
      hints.poll_group = [](void* d) { return of(d).poll_group(); };
    if constexpr (requires { object.wait_group(uint64_t{}); })
      hints.wait_group = [](void* d, uint64_t ns) { return of(d).wait_group(ns); };
    if constexpr (requires { object.wake(); }) hints.wake = [](void* d) { of(d).wake(); };
    if constexpr (requires(upcall_request * r) { object.cancel(r); })
      hints.cancel = [](void* d, upcall_request* r) { return of(d).cancel(r); };
    if constexpr (requires(const upcall_situation& s) { object.strategy(s, UPCALL_SLEEP); })
      hints.strategy = [](void* d, const upcall_situation* s, upcall_action usual) {
        return of(d).strategy(*s, usual);
      };
    check(upcall_driver_register(&raw_, &hints, &object), "upcall_driver_register");
  }
  driver(const driver&) = delete;
  driver& operator=(const driver&) = delete;
  // Its requests must be over.
  ~driver() { upcall_driver_unregister(raw_); }
  operator upcall_driver*() const { return raw_; }

 private:
  static D& of(void* d) { return *static_cast<D*>(d); }
  upcall_driver* raw_ = nullptr;
};

}  // namespace upcall
