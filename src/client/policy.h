// When to poll and when to block: a pure function of what is known (document 001, 3.2, and its future work).
#pragma once

#include "upcall/event.h"

namespace upcall::client {

// A thread that blocks in the kernel and comes back costs about as much as so long a time of polling.
inline constexpr uint64_t worth_of_blocking = 50'000;
// Longer than that nobody polls without a pause.
inline constexpr uint64_t longest_spin = 1'000'000;
inline constexpr uint64_t shortest_sleep = 20'000, longest_sleep = 1'000'000;

// How long polling is likely to pay: twice the usual time of a request, as most are over by then (PIOMan's rule).
inline uint64_t polling_budget(const upcall_situation& s) noexcept {
  if (!s.typical) return worth_of_blocking;
  uint64_t b = 2 * s.typical;
  return b < longest_spin ? b : longest_spin;
}

// A request that takes long is not polled for from the start: where somebody else can run, or a call can wait.
inline bool is_slow(const upcall_situation& s) noexcept { return s.typical > 4 * worth_of_blocking; }

inline upcall_action decide(const upcall_situation& s) noexcept {
  if (s.completed) return s.ready_threads ? UPCALL_POLL_AT_HOOK : UPCALL_POLL_AGAIN;
  bool early = s.since < polling_budget(s) && !is_slow(s);
  if (s.ready_threads) {
    // Others compute here: it costs them each poll, and them alone the time until the next hook.
    return early || !s.can_block ? UPCALL_POLL_AT_HOOK : UPCALL_BLOCK;
  }
  if (early) return UPCALL_POLL_AGAIN;
  return s.can_block ? UPCALL_BLOCK : UPCALL_SLEEP;
}

}  // namespace upcall::client
