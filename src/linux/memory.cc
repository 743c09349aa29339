// Thread stacks come from slabs: one mapping for many stacks, guards by MADV_GUARD_INSTALL, which splits no mapping
// (a million stacks do not meet vm.max_map_count). The program sees the mmap, mprotect, madvise and munmap calls of
// its thread library answered as if each stack were a mapping of its own. Without guard regions (kernels before
// 6.13) everything passes through.
#include <sys/mman.h>

#include <cerrno>

#include "arch/x86_64/cpu.h"
#include "base/check.h"
#include "kernel/memory.h"
#include "linux/linux.h"
#include "linux/patch/patch.h"

namespace upcall::linux_abi {

namespace {

constexpr int guard_install = 102, guard_remove = 103, populate_write = 23;
constexpr uint64_t page = 4096;
constexpr uint64_t huge_page = 2ul << 20;
constexpr uint64_t min_stack = 16 * 1024, max_stack = 1ul << 30;
constexpr uint64_t warm_bytes =
    2 * page;  // kept resident at the top of a free stack: its next user touches them
constexpr uint32_t warm_stacks = 12 * 1024;
constexpr uint32_t max_classes = 16, max_slabs = 512;
constexpr uint32_t first_slab = 16, largest_slab = 4096;

// fresh: handed out as PROT_NONE, nothing accessible yet as far as the program knows. used: accessible above the
// guard. free: in its class's list. lost: the program did something to it that only the kernel can keep; never reused.
enum class SlotState : uint8_t { free, fresh, used, lost };

struct Slot {
  uint32_t next_free;  // index in the slab + 1
  uint32_t guard_pages;
  SlotState state;
  uint64_t
      dropped_to;  // everything below has been given back by the thread that ends on it; 0: nothing known
};

struct Slab {
  uint64_t base, stack_bytes;
  uint32_t count, next_unused, free_head, cls;
  Slot* slots;
};

struct SizeClass {
  uint64_t bytes;
  uint32_t next_slab_count;
  uint32_t free_count;
  int32_t recent;  // slab to look in first, -1: none
};

SpinLock g_lock{Rank::memory};
SizeClass g_classes[max_classes];
Slab g_slabs[max_slabs];
atomic<uint32_t> g_slab_count{0};
bool g_unsupported = false;

}  // namespace

atomic<uint32_t> g_objects_mapped{0};

namespace {

Slab* slab_of(uint64_t address) noexcept {
  uint32_t n = g_slab_count.load(acquire);
  for (uint32_t i = n; i-- > 0;) {
    Slab& s = g_slabs[i];
    if (address >= s.base && address < s.base + s.count * s.stack_bytes) return &s;
  }
  return nullptr;
}

SizeClass* class_for(uint64_t bytes) noexcept {
  for (SizeClass& c : g_classes) {
    if (c.bytes == bytes) return &c;
    if (!c.bytes) {
      c = {bytes, first_slab, 0, -1};
      return &c;
    }
  }
  return nullptr;
}

bool set_guard(Slab* slab, Slot* slot, uint64_t at, uint32_t pages) noexcept {
  if (slot->guard_pages == pages) return true;
  if (slot->guard_pages > pages)
    kernel::sys(__NR_madvise, at + pages * page, (slot->guard_pages - pages) * page, guard_remove);
  else if (kernel::sys(__NR_madvise, at, pages * page, guard_install) != 0)
    return false;
  slot->guard_pages = pages;
  return true;
}

// One mapping, placed so that a stack's guard and its lower neighbour's top share a page of page tables.
bool add_slab(SizeClass* c) noexcept {
  uint32_t index = g_slab_count.load(relaxed);
  if (index >= max_slabs) return false;
  for (uint32_t count = c->next_slab_count; count; count /= 4) {
    uint64_t bytes = count * c->bytes + 2 * huge_page;
    long r = kernel::sys(__NR_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (kernel::is_error(r)) continue;
    auto start = static_cast<uint64_t>(r);
    uint64_t base = ((start + huge_page - 1) & ~(huge_page - 1)) + huge_page / 2;
    kernel::sys(__NR_munmap, start, base - start);
    kernel::sys(__NR_munmap, base + count * c->bytes, start + bytes - base - count * c->bytes);
    kernel::sys(__NR_madvise, base, count * c->bytes, MADV_NOHUGEPAGE);
    auto* slots = static_cast<Slot*>(kernel::map_pages(count * sizeof(Slot)));
    bool guards = slots && kernel::sys(__NR_madvise, base, page, guard_install) == 0 &&
                  kernel::sys(__NR_madvise, base, page, guard_remove) == 0;
    if (!guards) {
      kernel::sys(__NR_munmap, base, count * c->bytes);
      g_unsupported = slots != nullptr;
      return false;
    }
    g_slabs[index] = {base, c->bytes, count, 0, 0, static_cast<uint32_t>(c - g_classes), slots};
    g_slab_count.store(index + 1, release);  // pairs with slab_of
    c->recent = static_cast<int32_t>(index);
    if (c->next_slab_count < largest_slab) c->next_slab_count *= 2;
    return true;
  }
  return false;
}

uint64_t take_slot(SizeClass* c, bool accessible) noexcept {
  if (c->recent < 0 ||
      (!g_slabs[c->recent].free_head && g_slabs[c->recent].next_unused == g_slabs[c->recent].count)) {
    c->recent = -1;
    for (uint32_t i = 0, n = g_slab_count.load(relaxed); i < n && c->free_count; ++i)
      if (g_slabs[i].stack_bytes == c->bytes && g_slabs[i].free_head) c->recent = static_cast<int32_t>(i);
    if (c->recent < 0 && !add_slab(c)) return 0;
    if (c->recent >= 0) g_counters.stacks_mapped.fetch_add(1, relaxed);
  }
  Slab& s = g_slabs[c->recent];
  uint32_t i;
  bool fresh = !s.free_head;
  if (s.free_head) {
    i = s.free_head - 1;
    s.free_head = s.slots[i].next_free;
    --c->free_count;
  } else {
    i = s.next_unused++;
  }
  Slot& slot = s.slots[i];
  CHECK(slot.state == SlotState::free);
  uint64_t at = s.base + i * s.stack_bytes;
  slot.state = accessible ? SlotState::used : SlotState::fresh;
  slot.dropped_to = 0;
  if (accessible) set_guard(&s, &slot, at, 0);
  // Its thread touches these at once: one call costs less than two faults. Refused (before Linux 5.14): it faults.
  if (fresh) kernel::sys(__NR_madvise, at + s.stack_bytes - warm_bytes, warm_bytes, populate_write);
  g_counters.stacks_pooled.fetch_add(1, relaxed);
  return at;
}

// The next user must find zeros.
void free_slot(Slab* s, uint32_t i) noexcept {
  Slot& slot = s->slots[i];
  SizeClass& c = g_classes[s->cls];
  uint64_t at = s->base + i * s->stack_bytes, top = at + s->stack_bytes, low = at + slot.guard_pages * page;
  bool warm = c.free_count < warm_stacks && top - low > warm_bytes;
  uint64_t end = warm ? top - warm_bytes : top;
  if (slot.dropped_to > low) low = slot.dropped_to;
  if (low < end) kernel::sys(__NR_madvise, low, end - low, MADV_DONTNEED);
  if (warm) __builtin_memset(reinterpret_cast<void*>(top - warm_bytes), 0, warm_bytes);
  slot.state = SlotState::free;
  slot.next_free = s->free_head;
  s->free_head = i + 1;
  ++c.free_count;
  c.recent = static_cast<int32_t>(s - g_slabs);
}

constexpr int stack_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK;

// The part [from, from+length) of the slot becomes accessible: usually all but the guard.
bool open_slot(Slab* s, Slot* slot, uint64_t at, uint64_t from, uint64_t length) noexcept {
  uint64_t end = at + s->stack_bytes;
  uint32_t below = static_cast<uint32_t>((from - at) / page);
  if (slot->state == SlotState::fresh) {
    if (from + length != end) return false;
    if (!set_guard(s, slot, at, below)) return false;
    slot->state = SlotState::used;
    return true;
  }
  // A smaller guard on a stack from the library's cache.
  if (below < slot->guard_pages) return set_guard(s, slot, at, below);
  return true;
}

// What the pool cannot express: from now on an ordinary mapping.
void lose_slot(Slab* s, Slot* slot, uint64_t at) noexcept {
  if (slot->state == SlotState::fresh) kernel::sys(__NR_mprotect, at, s->stack_bytes, PROT_NONE);
  slot->state = SlotState::lost;
}

}  // namespace

Thread* sys_mmap(Thread* t) noexcept {
  auto prot = static_cast<int>(t->rdx), flags = static_cast<int>(t->r10);
  uint64_t length = t->rsi;
  if ((flags & ~MAP_NORESERVE) == stack_flags && t->rdi == 0 &&
      (prot == PROT_NONE || prot == (PROT_READ | PROT_WRITE)) && length >= min_stack && length <= max_stack &&
      length % page == 0 && !g_unsupported) {
    LockGuard guard(g_lock);
    if (SizeClass* c = class_for(length))
      if (uint64_t at = take_slot(c, prot != PROT_NONE)) return answer(t, static_cast<long>(at));
  }
  long r = raw_call(t);
  if (!kernel::is_error(r) && (prot & PROT_EXEC) && !(flags & MAP_ANONYMOUS)) {
    g_objects_mapped.fetch_add(1, relaxed);
    patch::patch_mapping(static_cast<uint64_t>(r), static_cast<uint64_t>(r) + length, static_cast<int>(t->r8),
                         t->r9);
  }
  return answer(t, r);
}

Thread* sys_munmap(Thread* t) noexcept {
  {
    LockGuard guard(g_lock);
    if (Slab* s = slab_of(t->rdi)) {
      auto i = static_cast<uint32_t>((t->rdi - s->base) / s->stack_bytes);
      Slot& slot = s->slots[i];
      if (t->rdi == s->base + i * s->stack_bytes && t->rsi == s->stack_bytes &&
          slot.state != SlotState::lost) {
        // Unmapped already: nothing is there, as far as the program knows.
        if (slot.state != SlotState::free) free_slot(s, i);
        return answer(t, 0);
      }
      slot.state = SlotState::lost;
    }
  }
  // Before the call: afterwards the range may be somebody else's, patched anew. The kernel refuses nothing else.
  if (t->rdi % page == 0 && t->rsi && t->rdi + t->rsi > t->rdi)
    patch::forget_mapping(t->rdi, t->rdi + t->rsi);
  return pass(t);
}

Thread* sys_mprotect(Thread* t) noexcept {
  auto prot = static_cast<int>(t->rdx);
  uint64_t from = t->rdi, length = (t->rsi + page - 1) & ~(page - 1);
  LockGuard guard(g_lock);
  Slab* s = slab_of(from);
  if (!s || (from & (page - 1))) return pass(t);
  auto i = static_cast<uint32_t>((from - s->base) / s->stack_bytes);
  Slot& slot = s->slots[i];
  uint64_t at = s->base + i * s->stack_bytes;
  if (slot.state == SlotState::lost || from + length > at + s->stack_bytes) return pass(t);
  if (prot == (PROT_READ | PROT_WRITE) && open_slot(s, &slot, at, from, length)) return answer(t, 0);
  if (prot == PROT_NONE && from == at && slot.state == SlotState::used &&
      set_guard(s, &slot, at, static_cast<uint32_t>(length / page)))
    return answer(t, 0);
  lose_slot(s, &slot, at);
  return pass(t);
}

// A thread's last act on its stack is to drop most of it. One that has lived for less time than a few dozen page
// faults take cannot have touched much below the top: its stack is left as it is, for the next thread.
Thread* sys_madvise(Thread* t) noexcept {
  constexpr uint64_t short_life_cycles = 60'000;
  if (t->rdx == MADV_DONTNEED) {
    LockGuard guard(g_lock);
    if (Slab* s = slab_of(t->rdi)) {
      uint64_t at = s->base + (t->rdi - s->base) / s->stack_bytes * s->stack_bytes;
      bool own = t->rsp >= at && t->rsp < at + s->stack_bytes;
      Slot& slot = s->slots[(at - s->base) / s->stack_bytes];
      slot.dropped_to = 0;  // the library may have given the stack to several threads since
      if (own && t->rdi == at && arch::tsc() - t->born < short_life_cycles) return answer(t, 0);
      if (own && t->rdi == at && slot.state == SlotState::used) {
        // The library leaves itself some pages below the stack pointer; here nothing below it is needed.
        constexpr uint64_t red_zone = 128;
        uint64_t low = at + slot.guard_pages * page, end = (t->rsp - red_zone) & ~(page - 1);
        if (end > low) kernel::sys(__NR_madvise, low, end - low, MADV_DONTNEED);
        slot.dropped_to = end;
        return answer(t, 0);
      }
    }
  }
  return pass(t);
}

bool find_stack(uint64_t address, uint64_t* bottom, uint64_t* size, uint64_t* guard) noexcept {
  Slab* s = slab_of(address);
  if (!s) return false;
  auto i = (address - s->base) / s->stack_bytes;
  *bottom = s->base + i * s->stack_bytes;
  *size = s->stack_bytes;
  *guard = s->slots[i].guard_pages * page;
  return true;
}

namespace {

// Asked by a call that fails in any case, with EFAULT where the page cannot be read: nobody is signalled.
bool readable(uint64_t at) noexcept {
  constexpr uint64_t no_such_change = ~0ul;
  return kernel::sys(__NR_rt_sigprocmask, no_such_change, at, nullptr, 8) != -EFAULT;
}

}  // namespace

bool find_own_stack(uint64_t tls, uint64_t fault, uint64_t* bottom, uint64_t* size) noexcept {
  constexpr uint64_t largest_guard = 1ul << 20;
  if (fault >= tls || tls - fault > max_stack) return false;
  uint64_t low = fault & ~(page - 1);
  if (readable(low)) return false;
  while (!readable(low))
    if ((low += page) > fault + largest_guard) return false;
  for (uint64_t at = low; at < tls; at += page)
    if (!readable(at)) return false;
  *bottom = low;
  *size = (tls & ~(page - 1)) + page - low;
  return true;
}

void lock_stacks_for_fork() noexcept { g_lock.lock(); }
void unlock_stacks_after_fork() noexcept { g_lock.unlock(); }

}  // namespace upcall::linux_abi
