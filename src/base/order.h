// Memory orders of upcall::atomic.
#pragma once

namespace upcall {

enum class Order : int {
  relaxed = __ATOMIC_RELAXED,
  acquire = __ATOMIC_ACQUIRE,
  release = __ATOMIC_RELEASE,
  acq_rel = __ATOMIC_ACQ_REL,
  fenced = __ATOMIC_SEQ_CST
};

inline constexpr Order relaxed = Order::relaxed;
inline constexpr Order acquire = Order::acquire;
inline constexpr Order release = Order::release;
inline constexpr Order acq_rel = Order::acq_rel;
// Sequentially consistent: only where a store must be seen before a later load of another word (Dekker). Each use
// says with whom.
inline constexpr Order fenced = Order::fenced;

}  // namespace upcall
