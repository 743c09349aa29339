// A growable array of trivially copyable elements in memory of its own from mmap: the engine runs where
// malloc must not. No destructor does anything: owners call release().
#pragma once

#include <linux/mman.h>

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/syscall.h"

namespace upcall::patch {

inline constexpr uintptr_t kPage = 4096;
inline constexpr uintptr_t page_down(uintptr_t a) { return a & ~(kPage - 1); }
inline constexpr uintptr_t page_up(uintptr_t a) { return page_down(a + kPage - 1); }

// PROT_* and MAP_* by value: <sys/mman.h> is libc's.
inline constexpr int kRead = 1, kWrite = 2, kExec = 4;
inline constexpr int kMapPrivate = 2, kMapAnonymous = 0x20, kMapFixedNoreplace = 0x100000;

template <typename T>
class Vec {
  static_assert(__is_trivially_copyable(T));

 public:
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) const { return data_[i]; }
  T& back() const { return data_[size_ - 1]; }
  void clear() { size_ = 0; }
  void pop_back() { --size_; }

  void push(const T& value) {
    if (size_ == capacity_) reserve(size_ + 1);
    data_[size_++] = value;
  }

  // New elements are not initialised, except that fresh memory is zero.
  void resize(size_t n) {
    reserve(n);
    size_ = n;
  }

  void reserve(size_t n) {
    if (n <= capacity_) return;
    size_t want = n > 2 * capacity_ ? n : 2 * capacity_;
    size_t bytes = page_up(want * sizeof(T));
    long memory =
        data_ ? kernel::sys(__NR_mremap, data_, page_up(capacity_ * sizeof(T)), bytes, MREMAP_MAYMOVE)
              : kernel::sys(__NR_mmap, nullptr, bytes, kRead | kWrite, kMapPrivate | kMapAnonymous, -1, 0);
    CHECK(!kernel::is_error(memory));
    data_ = reinterpret_cast<T*>(memory);
    capacity_ = bytes / sizeof(T);
  }

  void release() {
    if (data_) kernel::sys(__NR_munmap, data_, page_up(capacity_ * sizeof(T)));
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// Ascending, in place; the lists are short or nearly sorted.
template <typename T>
void sort(T* a, size_t n) {
  for (size_t gap = n / 2; gap; gap /= 2)
    for (size_t i = gap; i < n; ++i) {
      T v = a[i];
      size_t j = i;
      for (; j >= gap && v < a[j - gap]; j -= gap) a[j] = a[j - gap];
      a[j] = v;
    }
}

// Index of the first element that is not less than `v`.
template <typename T>
size_t lower_bound(const T* a, size_t n, const T& v) {
  size_t lo = 0;
  while (lo < n) {
    size_t mid = (lo + n) / 2;
    if (a[mid] < v)
      lo = mid + 1;
    else
      n = mid;
  }
  return lo;
}

}  // namespace upcall::patch
