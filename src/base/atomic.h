// Atomic variables with the interface of std::atomic, less what the runtime does not want: no defaulted memory
// order, no operators, no float. (<atomic> itself needs floating-point registers, which clang refuses to name under
// -mgeneral-regs-only.)
#pragma once

#include "base/jitter.h"
#include "base/order.h"

namespace upcall {

template <typename T>
class atomic {
 public:
  constexpr atomic() noexcept = default;
  constexpr atomic(T v) noexcept : value_(v) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  // The generic built-ins: clang's typed ones take no enumerations.
  T load(Order o) const noexcept {
    T v;
    __atomic_load(&value_, &v, static_cast<int>(o));
    return v;
  }
  void store(T v, Order o) noexcept {
    const Jitter around;
    __atomic_store(&value_, &v, static_cast<int>(o));
  }
  T exchange(T v, Order o) noexcept {
    const Jitter around;
    T old;
    __atomic_exchange(&value_, &v, &old, static_cast<int>(o));
    return old;
  }
  T fetch_add(T v, Order o) noexcept {
    const Jitter around;
    return __atomic_fetch_add(&value_, v, static_cast<int>(o));
  }
  T fetch_or(T v, Order o) noexcept {
    const Jitter around;
    return __atomic_fetch_or(&value_, v, static_cast<int>(o));
  }
  T fetch_and(T v, Order o) noexcept {
    const Jitter around;
    return __atomic_fetch_and(&value_, v, static_cast<int>(o));
  }
  T fetch_sub(T v, Order o) noexcept {
    const Jitter around;
    return __atomic_fetch_sub(&value_, v, static_cast<int>(o));
  }
  bool compare_exchange_strong(T& expected, T desired, Order success, Order failure) noexcept {
    return compare_exchange(expected, desired, false, success, failure);
  }
  bool compare_exchange_weak(T& expected, T desired, Order success, Order failure) noexcept {
    return compare_exchange(expected, desired, true, success, failure);
  }

 private:
  bool compare_exchange(T& expected, T desired, bool weak, Order success, Order failure) noexcept {
    const Jitter around;
    return __atomic_compare_exchange(&value_, &expected, &desired, weak, static_cast<int>(success),
                                     static_cast<int>(failure));
  }
  T value_{};
};

inline void full_fence() noexcept { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void compiler_barrier() noexcept { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
// Assembly: the compilers take the built-in function for one that may throw.
inline void pause_cpu() noexcept { __asm__ volatile("pause"); }

}  // namespace upcall
