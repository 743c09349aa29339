// What the storms share: options, a seeded generator, and a table of what every thread is doing, kept in a file so
// that another process can read it when this one hangs.
//
// The table is the test's own bookkeeping. It knows nothing of the runtime under test: a hang shows as a graph of
// slots that wait for objects, and the slots that hold those.
#pragma once

#include "../abi/abi.h"

#if defined(__SANITIZE_THREAD__)
#define UPCALL_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UPCALL_TEST_TSAN 1
#endif
#endif
#ifndef UPCALL_TEST_TSAN
#define UPCALL_TEST_TSAN 0
#endif

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __asan_unpoison_memory_region(const volatile void* address, size_t size);
#endif

namespace upcall::test {

// gcc 12's TSan does not know the clock-taking locks and joins, runs handlers at its own next convenience and merges
// queued signals, and can be cancelled in few places. What it cannot follow it would report.
constexpr bool kTsan = UPCALL_TEST_TSAN != 0;

// A cancelled thread leaves the stack below poisoned for ASan, which does not see the unwinding; whatever runs
// there later (destructors of keys) would be reported.
inline void forget_poisoned_stack() {
#if defined(__SANITIZE_ADDRESS__)
  char* here = static_cast<char*>(__builtin_frame_address(0));
  __asan_unpoison_memory_region(here - 16384, 16384 + 512);
#endif
}

struct Options {
  double seconds = 5;
  uint64_t seed = 0;
  int threads = 0;  // 0: the program's own choice

  int64_t duration_ns() const { return static_cast<int64_t>(seconds * 1e9); }
};

// splitmix64: any seed is a good one.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  Random(uint64_t seed, uint64_t stream) : state_(seed ^ (stream + 1) * 0xD1B54A32D192ED03u) { next(); }

  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }
  int below(int bound) { return static_cast<int>(next() % static_cast<uint64_t>(bound)); }
  bool one_in(int n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

enum class Op : int {
  kNone,
  kStarting,
  kComputing,
  kYielding,
  kSleeping,
  kMutex,
  kCondition,
  kSemaphore,
  kFutexLock,
  kFutexWait,
  kReadLock,
  kWriteLock,
  kPipeRead,
  kPipeWrite,
  kCreating,
  kJoining,
  kJoiningSlot,
  kSignalling,
  kAllocating,
  kDoomed,
  kEnding,
  kEnded,
  kSigwait,
  kMasking,
  kSuspended,
  kJumping,
  kForking,
  kSpawning,
  kChild,
  kCount,
};

struct Slot {
  std::atomic<Op> op;
  std::atomic<int> object;
  std::atomic<int64_t> since_ns;
  std::atomic<int> tid;
  std::atomic<uint32_t> generation;
  std::atomic<uint64_t> operations;
};

enum class ObjectKind : int { kMutex, kFutexLock, kRwLock, kCount };

struct Table {
  static constexpr int kSlots = 1024, kObjects = 64;
  static constexpr uint64_t kMagic = 0x55504c4c53544d31u;

  uint64_t magic;
  uint64_t seed;
  Slot slots[kSlots];
  std::atomic<int> owner[static_cast<int>(ObjectKind::kCount)][kObjects];  // slot + 1 of the holder, 0 free
};

extern Table* table;
extern constinit thread_local Slot* own_slot;

// Parses --seconds, --seed, --threads, --table FILE and --show FILE (prints a table and exits), says the seed.
Options begin(int count, char** arguments);
void show(const Table& shown);
int slot_index(const Slot* slot);

// The calling thread is in slot `index` from here on.
void enter_slot(int index);

// For the time of its life the calling thread is doing `op`; then again what it did before.
class Doing {
 public:
  explicit Doing(Op op, int object = -1) : slot_(own_slot) {
    if (slot_ == nullptr) return;
    op_ = slot_->op.load(std::memory_order_relaxed);
    object_ = slot_->object.load(std::memory_order_relaxed);
    note(op, object);
    slot_->operations.fetch_add(1, std::memory_order_relaxed);
  }
  ~Doing() {
    if (slot_ != nullptr) note(op_, object_);
  }
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

 private:
  void note(Op op, int object) {
    slot_->object.store(object, std::memory_order_relaxed);
    slot_->op.store(op, std::memory_order_relaxed);
    slot_->since_ns.store(now_ns(), std::memory_order_relaxed);
  }

  Slot* slot_;
  Op op_ = Op::kNone;
  int object_ = -1;
};

inline void set_owner(ObjectKind kind, int object, bool held) {
  const int value = held && own_slot != nullptr ? slot_index(own_slot) + 1 : 0;
  table->owner[static_cast<int>(kind)][object].store(value, std::memory_order_relaxed);
}

// Two numbers that are equal whenever nobody is inside; what a lock that lets two in would break.
struct Pair {
  int64_t a = 0, b = 0;

  template <class F>
  void step(F between) {
    CHECK_EQ(a, b);
    const int64_t old = a;
    a = old + 1;
    between();
    CHECK_EQ(b, old);
    b = old + 1;
  }
};

}  // namespace upcall::test
