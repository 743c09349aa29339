// Stands before src/base/atomic.h: every atomic step goes through the simulated machine, which may let other kernel
// threads run first, and keeps stores back as a CPU's store buffer does.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/order.h"

namespace upcall {

namespace sim {
// In the order of the program; a step of the machine before each. machine.cc
uint64_t load(const void* at, uint32_t size) noexcept;
void store(void* at, uint64_t value, uint32_t size, bool drain) noexcept;
// Before a locked instruction on `at`: its kernel thread's stores are visible.
void before_locked(const void* at) noexcept;
void fence() noexcept;
void pause() noexcept;
}  // namespace sim

template <typename T>
class atomic {
 public:
  constexpr atomic() noexcept = default;
  constexpr atomic(T v) noexcept : value_(v) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(Order) const noexcept {
    uint64_t raw = sim::load(&value_, sizeof(T));
    T v;
    std::memcpy(&v, &raw, sizeof v);
    return v;
  }
  void store(T v, Order o) noexcept {
    uint64_t raw = 0;
    std::memcpy(&raw, &v, sizeof v);
    sim::store(&value_, raw, sizeof(T), o == Order::fenced);
  }
  T exchange(T v, Order) noexcept {
    sim::before_locked(&value_);
    T old = value_;
    value_ = v;
    return old;
  }
  T fetch_add(T v, Order) noexcept {
    return change([v](T old) { return static_cast<T>(old + v); });
  }
  T fetch_sub(T v, Order) noexcept {
    return change([v](T old) { return static_cast<T>(old - v); });
  }
  T fetch_or(T v, Order) noexcept {
    return change([v](T old) { return static_cast<T>(old | v); });
  }
  T fetch_and(T v, Order) noexcept {
    return change([v](T old) { return static_cast<T>(old & v); });
  }
  bool compare_exchange_strong(T& expected, T desired, Order, Order) noexcept {
    sim::before_locked(&value_);
    if (value_ != expected) {
      expected = value_;
      return false;
    }
    value_ = desired;
    return true;
  }
  bool compare_exchange_weak(T& expected, T desired, Order success, Order failure) noexcept {
    return compare_exchange_strong(expected, desired, success, failure);
  }

 private:
  template <typename F>
  T change(F f) noexcept {
    sim::before_locked(&value_);
    T old = value_;
    value_ = f(old);
    return old;
  }
  T value_{};
};

inline void full_fence() noexcept { sim::fence(); }
inline void compiler_barrier() noexcept {}
inline void pause_cpu() noexcept { sim::pause(); }

}  // namespace upcall
