// What the scheduler asks of the event manager (src/event), which lies above it: processors that have nothing to run wait
// for events, and the others look for them now and then. Nothing is done while no thread waits for an event.
#pragma once

#include "activation/activation.h"

namespace upcall::activation {

// What one wait has brought; the source knows what it means.
struct Found {
  static constexpr uint32_t room = 64;
  uint32_t count = 0;
  struct {
    uint64_t data;
    uint32_t mask;
  } event[room];
};

struct EventSource {
  // Fills `found`: what has come by now; what comes until `deadline` (CLOCK_MONOTONIC, ns), or the calling activation is
  // told to look (wake_sleeper).
  void (*look)(Found* found);
  void (*wait)(Activation* a, Found* found, uint64_t deadline);
  // Makes the threads ready that waited for these. From the owner of a processor or an activation that is `outside`.
  void (*deliver)(Activation* a, const Found& found);
};

// Null: nothing has ever waited for an event.
extern atomic<const EventSource*> g_event_source;
// Threads that wait for events now.
extern atomic<uint32_t> g_event_waits;
// Counts threads that events have made ready.
extern atomic<uint64_t> g_event_releases;

// Threads that wait for a hook, and what makes them ready (their number): src/linux/native_wait.cc. Pollers of drivers
// (src/client) wait so where threads compute; the hooks are the places where events are looked for.
extern atomic<uint32_t> g_hooked;
extern uint32_t (*g_run_hooks)(Activation* a);

inline bool events_awaited() noexcept { return g_event_waits.load(relaxed) != 0; }
inline bool hooks_wanted() noexcept { return g_hooked.load(relaxed) != 0; }
inline bool events_wanted() noexcept { return events_awaited() || hooks_wanted(); }
// Looks for events and makes their threads ready. From the owner of a processor, or the monitor. How many there were.
uint32_t look_for_events(Activation* a) noexcept;
// The same if the processor has not looked for a while.
void look_in_turn(Activation* a) noexcept;
// Sleeps until a->wake is set, `deadline`, or, if nobody else waits for them, an event: then it is in `found`.
void sleep_or_watch(Activation* a, uint64_t deadline, Found* found) noexcept;
// After sleep_or_watch.
void deliver_events(Activation* a, const Found& found) noexcept;
// The same by an activation that does not own its processor.
void deliver_as_guest(Activation* a, const Found& found) noexcept;
// Where all processors compute, a parked activation is sent to wait for events, and stops who computes when one comes. False:
// none is parked yet. activation.cc
bool send_outpost(Processor* p) noexcept;
bool has_outpost() noexcept;
// Of a processor that runs a thread: it has computed for a tick, or an outpost has just been of use and was needed elsewhere.
bool wants_outpost(const Processor* p) noexcept;
// A thread that waits for the same thing again and again while its processor has nothing else to run waits in the kernel, like
// a kernel thread: one call instead of a try, a wait for events and the call again. Others that wait for events must be told by
// somebody else then: an idle processor, or an outpost, which is asked for.
inline constexpr uint32_t lone_after = 64;
bool may_wait_alone(const Processor* p, const void* what) noexcept;
// A thread is about to wait for `what` by events. From the owner.
void note_wait(Processor* p, const void* what) noexcept;
// The monitor: an outpost has been asked for since it asked last.
Processor* takes_lone_request() noexcept;
// Of that activation, instead of sleeping: until a->wake is set, or it is not worth it any more.
void watch_as_outpost(Activation* a) noexcept;
// Sets a->wake and has the activation look at it.
void wake_sleeper(Activation* a) noexcept;
// Somebody waits for events, and will notice them at once.
bool events_watched() noexcept;
// The caller has been watching, or was to, and goes to sleep where it will not: somebody else is found, if need be.
void pass_watch_on() noexcept;
// fork's child.
void forget_events() noexcept;

}  // namespace upcall::activation
