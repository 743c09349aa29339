// What the parts of the life storm share: signals that carry who sent them to whom and when (life_signals.cc), processes
// (life_children.cc) and the threads (life_storm.cc). The objects of the storm (storm_actions.cc) are used as well.
#pragma once

#include <setjmp.h>

#include "storm.h"

namespace upcall::test::life {

using storm::own;
using storm::Worker;
using storm::workers;

constexpr int kThreads = 20;
// Beside storm::kSignal. Real-time signals arrive as often as they were sent, those of one number in order.
constexpr int kQueued = 41;  // to a thread, with a value, to its handler
constexpr int kWaited = 42;  // to a thread, with a value; blocked everywhere, taken by sigwait
constexpr int kForAll = 43;  // to the process, with a value
constexpr int kJump = 44;    // of a thread's own timer; its handler leaves by siglongjmp
constexpr int kTimer = 45;   // of a thread's own timer

// What one sender has sent to one thread, and what that has got.
struct Stream {
  uint32_t sent = 0;  // by the target's guard
  std::atomic<uint32_t> seen{0};
};

struct Life {
  Stream queued[kThreads + 1], waited[kThreads + 1];  // by sender; the last one is the manager
  std::atomic<uint32_t> plain_sent{0}, plain_seen{0};
  uint32_t generation = 0;
  // What the thread has blocked of `handled_signals()`, for handlers to look at; not while it changes.
  std::atomic<uint64_t> mask{0};
  std::atomic<bool> mask_changes{false}, jump_ready{false};
  sigjmp_buf jump;
  timer_t timer{};
  bool has_timer = false;
};
extern Life lives[kThreads];

struct LifeCounts {
  std::atomic<int64_t> queued{0}, waited{0}, plain{0}, ticks{0}, jumps{0}, suspended{0}, forks{0}, spawns{0},
      child_signals{0}, pushed{0}, popped{0};
  std::atomic<uint64_t> for_all_sent{0}, for_all_seen{0}, for_all_sent_sum{0}, for_all_seen_sum{0};
  std::atomic<uint32_t> plain_all_sent{0}, plain_all_seen{0};
};
extern LifeCounts life_counts;

inline int own_index() { return own != nullptr ? static_cast<int>(own - workers) : kThreads; }
inline Life& own_life() { return lives[own_index()]; }

// --- life_signals.cc
void install_handlers();
// The signals that our handlers take, as a set and bit by bit.
sigset_t handled_signals();
uint64_t mask_now();
// The calling thread is who it was, with the mask it has set.
void begin_life(Worker* worker, uint32_t generation);
void check_life();
void end_life();
// Nobody sends to the calling thread any more, and all has come.
void hear_all();
void block_all();
storm::Action signal_action(Random& random);
// Timers of the process, at random or every `microseconds`; 0 with `off`.
void set_ticks(Random& random, int microseconds, bool off);
// Waits, never to return but by cancellation, `depth` cleanup handlers deep.
void be_cancelled_deep(Random& random, int depth);

// --- life_children.cc
// A process that is forked or spawned, makes threads, and ends as was said.
void use_process(Random& random);
// main() of a program that use_process has started, if it is one.
void be_spawned(int count, char** arguments);

}  // namespace upcall::test::life
