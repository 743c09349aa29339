// pthread_spin_lock: glibc's word (1 free, 0 or less held) and its pthread_spin_trylock, so that its unlock, other
// processes, and a sanitizer that stands before glibc, go on as they are. A spinner whose holder has been stopped lets others of its processor run: the holder is among them, or on its
// way. Yielding does not reach a holder of lower priority, in another process, or blocked in the kernel: then it sleeps.
#include "pthread/real.h"
#include "pthread/wait.h"

namespace upcall::pthread {

namespace {

constexpr uint32_t spins = 100;  // some microseconds: most holders on another processor are done by then
constexpr uint32_t spins_alone = 4;
constexpr uint32_t yields = 50;
constexpr uint64_t sleep_ns = 50'000;

bool take(pthread_spinlock_t* lock) noexcept { return real().spin_trylock(lock) == 0; }

void sleep_a_little() noexcept {
  if (started() && !is_guest()) {
    native(linux_abi::sleep_native, nullptr, sleep_ns);
    return;
  }
  constexpr timespec shortly = {0, sleep_ns};
  kernel::sys(__NR_nanosleep, &shortly, nullptr);
}

void wait(pthread_spinlock_t* lock) noexcept {
  for (uint32_t round = 0;; ++round) {
    uint32_t n = started() && activation::g_runtime.processors == 1 ? spins_alone : spins;
    for (uint32_t i = 0; i < n; ++i, pause_cpu())
      if (*lock > 0 && take(lock)) return;  // volatile: read each time
    if (round < yields)
      sched_yield();
    else
      sleep_a_little();
  }
}

}  // namespace

UPCALL_EXPORT int pthread_spin_lock(pthread_spinlock_t* lock) noexcept {
  if (__builtin_expect(!symbols() || !real().spin_free_is_one, 0)) return real().spin_lock(lock);
  if (__builtin_expect(!take(lock), 0)) wait(lock);
  return 0;
}

}  // namespace upcall::pthread
