#include "machine.h"

#include <sys/mman.h>

#include <cerrno>

namespace upcall::sim {

Machine g;

namespace {

constexpr uintptr_t program_base = 0x100000000000, runtime_base = 0x200000000000;
constexpr size_t region_bytes = 1ul << 30;
size_t g_program_used = 0, g_runtime_used = 0;

void* take(uintptr_t base, size_t* used, size_t bytes) noexcept {
  if (!*used) {
    void* p = mmap(reinterpret_cast<void*>(base), region_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    SIM_CHECK(p == reinterpret_cast<void*>(base), "no memory at the simulation's address");
  }
  auto* result = reinterpret_cast<char*>(base) + *used;
  *used += (bytes + 63) & ~63ul;
  SIM_CHECK(*used <= region_bytes, "the simulated memory is used up");
  return result;
}

void start_kernel_thread() noexcept {
  g.current->start(g.current->argument);
  fail("a kernel thread has returned");
}

void write_memory(void* at, uint64_t value, uint32_t size) noexcept { __builtin_memcpy(at, &value, size); }

void drain_oldest(KernelThread* k) noexcept {
  BufferedStore s = k->buffer[0];
  for (uint32_t i = 1; i < k->buffered; ++i) k->buffer[i - 1] = k->buffer[i];
  --k->buffered;
  write_memory(s.at, s.value, s.size);
}

void drain_somebody() noexcept {
  KernelThread* k = &g.thread[random_below(static_cast<uint64_t>(g.count))];
  if (k->buffered) drain_oldest(k);
}

void wake_due() noexcept {
  uint64_t next = ~0ull;
  for (int i = 0; i < g.count; ++i) {
    KernelThread* k = &g.thread[i];
    if (k->why == Why::runnable || k->why == Why::ended) continue;
    if (k->until <= g.now) {
      bool timeout = k->why == Why::futex;
      wake(k, timeout ? -ETIMEDOUT : k->why == Why::signal_wait ? -EAGAIN : 0);
    } else if (k->until < next) {
      next = k->until;
    }
  }
  g.next_due = next;
}

KernelThread* highest(KernelThread** candidates, int n) noexcept {
  KernelThread* best = candidates[0];
  for (int i = 1; i < n; ++i)
    if (candidates[i]->priority > best->priority) best = candidates[i];
  return best;
}

// Somebody sleeps in the middle of something, for another kernel thread to go on (wait_step).
bool waits_for_another() noexcept {
  for (int i = 0; i < g.count; ++i)
    if (g.thread[i].why == Why::asleep && !g.thread[i].background) return true;
  return false;
}

// One of those that can run. A stalled one stands for a kernel thread that its CPU has left for another program.
KernelThread* choose(KernelThread* except) noexcept {
  for (;;) {
    int able = 0, background = 0;
    KernelThread* first_stalled = nullptr;
    KernelThread* candidates[sizeof g.thread / sizeof g.thread[0]];
    KernelThread* in_background[sizeof g.thread / sizeof g.thread[0]];
    for (int i = 0; i < g.count; ++i) {
      KernelThread* k = &g.thread[i];
      if (k->why != Why::runnable) continue;
      if (k->stalled_until > g.steps) {
        if (!first_stalled || k->stalled_until < first_stalled->stalled_until) first_stalled = k;
        continue;
      }
      if (k == except) continue;
      if (k->background)
        in_background[background++] = k;
      else
        candidates[able++] = k;
    }
    if (background && (!able || one_in(g.settings.background_one_in)))
      return in_background[random_below(static_cast<uint64_t>(background))];
    if (able && g.settings.fall_one_in) return highest(candidates, able);
    if (able) return candidates[random_below(static_cast<uint64_t>(able))];
    if (except && except->why == Why::runnable && except->stalled_until <= g.steps) return except;
    if (first_stalled) {
      first_stalled->stalled_until = 0;
      return first_stalled;
    }
    if (g.next_due > g.now) {
      drain_all();
      if (!waits_for_another()) check_quiescent(g.next_due);
      g.now = g.next_due;
    }
    wake_due();
  }
}

// Who has accessed the words of this hash last.
uint8_t g_last_at[4096];

bool accessed_by_another(const void* at) noexcept {
  if (!at) return false;
  auto where = reinterpret_cast<uintptr_t>(at);
  // Variables lie elsewhere in every process.
  if (where - program_base >= region_bytes && where - runtime_base >= region_bytes)
    where -= reinterpret_cast<uintptr_t>(&g);
  uint8_t& last = g_last_at[where / 4 * 0x9E3779B97F4A7C15ull >> 52];
  auto me = static_cast<uint8_t>(g.current->index + 1);
  bool other = last && last != me;
  last = me;
  return other;
}

// A step before the access: what happens first elsewhere.
void before(const char* what, const void* at, uint64_t value) noexcept {
  ++g.steps;
  record(what, at, value);
  SIM_CHECK(g.steps < g.step_limit, "no end: %lu steps", static_cast<unsigned long>(g.steps));
  KernelThread* k = g.current;
  pass_time(1 + random_below(2 * g.settings.step_ns));
  if (g.settings.store_buffers && one_in(g.settings.drain_one_in)) drain_somebody();
  bool shared = accessed_by_another(at);
  if (shared && g.settings.pause_one_in && one_in(g.settings.pause_one_in)) {
    k->stalled_until = g.steps + 1 + random_below(g.settings.pause_steps);
    reschedule(false);
  } else if (g.settings.fall_one_in) {
    if (one_in(g.settings.fall_one_in)) {
      k->priority = --g.lowest_priority;
      reschedule(false);
    }
  } else if (one_in(g.settings.switch_one_in)) {
    if (g.settings.stall_one_in && one_in(g.settings.stall_one_in))
      k->stalled_until = g.steps + 1 + random_below(3000);
    reschedule(false);
  }
  if (g.current->signal_pending && !one_in(4)) deliver_signals();
}

}  // namespace

uint64_t random_below(uint64_t n) noexcept {
  // splitmix64
  uint64_t z = g.random += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return static_cast<uint64_t>((static_cast<unsigned __int128>(z) * n) >> 64);
}
bool one_in(uint64_t n) noexcept { return random_below(n) == 0; }

void* program_memory(size_t bytes) noexcept { return take(program_base, &g_program_used, bytes); }
void* runtime_memory(size_t bytes) noexcept {
  return take(runtime_base, &g_runtime_used, (bytes + 4095) & ~4095ul);
}
bool is_program_memory(const void* p) noexcept {
  return reinterpret_cast<uintptr_t>(p) - program_base < region_bytes;
}

KernelThread* new_kernel_thread(void* stack_top, void (*start)(void*), void* argument,
                                const char* role) noexcept {
  SIM_CHECK(g.count < static_cast<int>(sizeof g.thread / sizeof g.thread[0]), "too many kernel threads");
  KernelThread* k = &g.thread[g.count];
  k->index = g.count++;
  k->tid = 1000 + k->index;
  k->role = role;
  k->start = start;
  k->argument = argument;
  k->priority = static_cast<int64_t>(random_below(1000));
  if (stack_top) {
    auto* top = static_cast<uint64_t*>(stack_top) - 2;
    *top = reinterpret_cast<uint64_t>(&start_kernel_thread);
    top -= 6;
    for (int i = 0; i < 6; ++i) top[i] = 0;
    k->sp = top;
  }
  return k;
}

void pass_time(uint64_t ns) noexcept {
  g.now += ns;
  g.current->cpu_time += ns;
  if (g.now >= g.next_due) wake_due();
}

void drain(KernelThread* k) noexcept {
  while (k->buffered) drain_oldest(k);
}
void drain_all() noexcept {
  for (int i = 0; i < g.count; ++i) drain(&g.thread[i]);
}

void reschedule(bool others_first) noexcept {
  KernelThread* k = g.current;
  if (others_first) k->priority = --g.lowest_priority;
  KernelThread* n = choose(others_first ? k : nullptr);
  if (n == k) return;
  g.current = n;
  sim_switch(&k->sp, n->sp);
}

long block(Why why, uint64_t until, const void* futex, bool interruptible) noexcept {
  KernelThread* k = g.current;
  bool open = interruptible && !(k->blocked_signals & activation::bit(activation::preempt_signal));
  if (open && k->signal_pending) return -EINTR;
  k->interruptible = open;
  k->futex = futex;
  k->until = until;
  k->result = 0;
  k->why = why;
  if (until < g.next_due) g.next_due = until;
  drain(k);
  reschedule(false);
  return k->result;
}

void wake(KernelThread* k, long result) noexcept {
  k->why = Why::runnable;
  k->until = ~0ull;
  k->result = result;
}

void post_signal(KernelThread* k) noexcept {
  k->signal_pending = true;
  if (k->why == Why::signal_wait) {
    k->signal_pending = false;
    wake(k, activation::preempt_signal);
  } else if (k->why != Why::runnable && k->why != Why::ended && k->interruptible) {
    wake(k, -EINTR);
  }
}

void deliver_signals() noexcept {
  KernelThread* k = g.current;
  if (!k->signal_pending || (k->blocked_signals & activation::bit(activation::preempt_signal))) return;
  k->signal_pending = false;
  drain(k);
  run_signal_handler(k);
}

void step(const char* what, uint64_t value) noexcept {
  if (!g.quiet) before(what, nullptr, value);
}

uint64_t load(const void* at, uint32_t size) noexcept {
  if (!g.quiet) before("load", at, 0);
  uint64_t value = 0;
  KernelThread* k = g.current;
  for (uint32_t i = k ? k->buffered : 0; i-- > 0;) {
    const BufferedStore& s = k->buffer[i];
    if (s.at == at && s.size == size) return s.value;
    auto begin = reinterpret_cast<uintptr_t>(s.at), wanted = reinterpret_cast<uintptr_t>(at);
    if (begin < wanted + size && wanted < begin + s.size) {  // in part: as a CPU does, after the store
      drain(k);
      break;
    }
  }
  __builtin_memcpy(&value, at, size);
  return value;
}

void store(void* at, uint64_t value, uint32_t size, bool drain_first) noexcept {
  if (g.quiet) {
    write_memory(at, value, size);
    return;
  }
  before(drain_first ? "store, fenced" : "store", at, value);
  store_at_once(at, value, size, drain_first);
}

void store_at_once(void* at, uint64_t value, uint32_t size, bool drain_first) noexcept {
  check_private_store(at);
  KernelThread* k = g.current;
  if (!g.settings.store_buffers || drain_first) {
    drain(k);
    write_memory(at, value, size);
    return;
  }
  if (k->buffered == sizeof k->buffer / sizeof k->buffer[0]) drain_oldest(k);
  k->buffer[k->buffered++] = {at, value, size};
}

void before_locked(const void* at) noexcept {
  if (g.quiet) return;
  before("locked", at, 0);
  drain(g.current);
}

void fence() noexcept {
  if (g.quiet) return;
  before("fence", nullptr, 0);
  drain(g.current);
}

void pause() noexcept {
  if (g.quiet) return;
  pass_time(100);
  if (!one_in(4)) return;
  before("pause", nullptr, 0);
  reschedule(true);
}

}  // namespace upcall::sim

namespace upcall::arch {

uint64_t read_fs() noexcept { return sim::g.current->fs; }
void write_fs(uint64_t v) noexcept { sim::g.current->fs = v; }
uint64_t read_gs() noexcept { return sim::g.current->gs; }
void write_gs(uint64_t v) noexcept { sim::g.current->gs = v; }
uint64_t tsc() noexcept { return sim::g.now / 8; }

}  // namespace upcall::arch
