// Short names for memory orders: every atomic access in the runtime names one.
#pragma once

#include <atomic>

namespace upcall {

using std::atomic;
inline constexpr auto relaxed = std::memory_order_relaxed;
inline constexpr auto acquire = std::memory_order_acquire;
inline constexpr auto release = std::memory_order_release;
inline constexpr auto acq_rel = std::memory_order_acq_rel;
// Only where a store must be seen before a later load of another word (Dekker): each use says with whom.
inline constexpr auto fenced = std::memory_order_seq_cst;

inline void pause_cpu() noexcept { __builtin_ia32_pause(); }
inline void compiler_barrier() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace upcall
