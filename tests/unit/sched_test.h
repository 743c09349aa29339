// What the tests of src/sched share: descriptors without a table, and seeds.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <vector>

#include "sched/thread.h"

// The saved vector state lies behind the structure, so a descriptor is T_SIZE bytes, not sizeof(Thread).
class Descriptors {
 public:
  explicit Descriptors(size_t n)
      : size_(n), memory_(static_cast<char*>(std::aligned_alloc(64, n * size_t{T_SIZE}))) {
    if (!memory_) throw std::bad_alloc();
    std::memset(memory_, 0, n * size_t{T_SIZE});
    for (size_t i = 0; i < n; ++i) {
      at(i)->slot = static_cast<uint32_t>(i);
      at(i)->timer_index.store(upcall::sched::no_timer, upcall::relaxed);
    }
  }
  ~Descriptors() { std::free(memory_); }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  upcall::sched::Thread* at(size_t i) const {
    return reinterpret_cast<upcall::sched::Thread*>(memory_ + i * size_t{T_SIZE});
  }
  size_t size() const { return size_; }

 private:
  size_t size_;
  char* memory_;
};

// UPCALL_TEST_SEED repeats a run.
inline uint64_t fresh_seed() {
  const char* given = std::getenv("UPCALL_TEST_SEED");
  uint64_t seed = given ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::printf("UPCALL_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return seed;
}

// The same seeds each time, and one that no run had before.
inline std::vector<uint64_t> seeds(uint64_t fixed) {
  std::vector<uint64_t> all;
  for (uint64_t i = 1; i <= fixed; ++i) all.push_back(i);
  all.push_back(fresh_seed());
  return all;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // 0 ... n-1
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(engine_() % n); }

 private:
  std::mt19937_64 engine_;
};
