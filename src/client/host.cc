// What the event manager asks of the runtime. Where that does not run the process there are no hooks, and nobody knows who
// computes.
#include "activation/event_source.h"
#include "base/counters.h"
#include "client/driver.h"
#include "linux/linux.h"
#include "pthread/wait.h"

namespace upcall::client {

using activation::g_runtime;

Load load_now() noexcept {
  if (pthread::is_guest() || !pthread::started()) return {0, 0};
  // The processor may be another one by now: then it is that one's figure, and as good.
  const activation::Processor* p = activation::self()->processor;
  return {g_runtime.processors == 1 ? 0 : g_runtime.sleeping.load(relaxed),
          p->ready.count() + (p->inbox.load(relaxed) ? 1 : 0)};
}

bool wait_for_hook(uint64_t until) noexcept {
  if (pthread::is_guest() || !pthread::started()) return false;
  upcall_native_call(linux_abi::hook_wait, until, 0, 0);
  return true;
}

void count(Count what) noexcept {
  auto& c = g_counters;
  atomic<uint64_t>* counter[] = {&c.driver_requests, &c.driver_polls,  &c.driver_hooks,
                                 &c.driver_sleeps,   &c.driver_blocks, &c.driver_refusals};
  counter[static_cast<uint32_t>(what)]->fetch_add(1, relaxed);
}

}  // namespace upcall::client
