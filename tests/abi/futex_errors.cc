// abi: threads=1
// What the kernel refuses, the same way: bad addresses, misaligned words, bad timeouts, empty masks, unknown commands.
#include <limits.h>
#include <sys/mman.h>

#include "abi.h"

static uint32_t words[4];

static void* number(uintptr_t value) { return reinterpret_cast<void*>(value); }

static void refusals() {
  void* hole = mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(hole != MAP_FAILED);
  void* misaligned = reinterpret_cast<char*>(words) + 2;
  void* kernel = number(0xffff'8000'0000'0000u);

  CHECK_ERRNO(futex(nullptr, FUTEX_WAIT_PRIVATE, 0), EFAULT);
  CHECK_ERRNO(futex(hole, FUTEX_WAIT_PRIVATE, 0), EFAULT);
  CHECK_ERRNO(futex(kernel, FUTEX_WAIT_PRIVATE, 0), EFAULT);
  CHECK_ERRNO(futex(kernel, FUTEX_WAKE_PRIVATE, 1), EFAULT);
  CHECK_ERRNO(futex(misaligned, FUTEX_WAIT_PRIVATE, 0), EINVAL);
  CHECK_ERRNO(futex(misaligned, FUTEX_WAKE_PRIVATE, 1), EINVAL);

  const timespec negative = {-1, 0}, too_many = {0, 1'000'000'000}, below = {0, -1};
  for (const timespec* bad : {&negative, &too_many, &below}) {
    CHECK_ERRNO(futex(words, FUTEX_WAIT_PRIVATE, 0, bad), EINVAL);
    CHECK_ERRNO(futex(words, FUTEX_WAIT_BITSET_PRIVATE, 0, bad, nullptr, 1), EINVAL);
    CHECK_ERRNO(futex(words, FUTEX_WAIT_PRIVATE, 1, bad), EINVAL);
  }
  CHECK_ERRNO(futex(words, FUTEX_WAIT_PRIVATE, 0, hole), EFAULT);
  CHECK_ERRNO(futex(words, FUTEX_WAIT_PRIVATE, 0, number(8)), EFAULT);

  CHECK_ERRNO(futex(words, FUTEX_WAIT_BITSET_PRIVATE, 0, nullptr, nullptr, 0), EINVAL);
  CHECK_ERRNO(futex(words, FUTEX_WAKE_BITSET_PRIVATE, 1, nullptr, nullptr, 0), EINVAL);
  CHECK_ERRNO(futex(words, 97 | FUTEX_PRIVATE_FLAG, 1), ENOSYS);
  CHECK_ERRNO(futex(words, FUTEX_WAKE_PRIVATE | FUTEX_CLOCK_REALTIME, 1), ENOSYS);

  CHECK_ERRNO(futex(words, FUTEX_REQUEUE_PRIVATE, 0xffff'ffffu, number(1), words + 1), EINVAL);
  CHECK_ERRNO(futex(words, FUTEX_CMP_REQUEUE_PRIVATE, 1, number(uintptr_t{0xffff'ffffu}), words + 1, 0),
              EINVAL);
  CHECK_ERRNO(futex(words, FUTEX_CMP_REQUEUE_PRIVATE, 1, number(1), misaligned, 0), EINVAL);
  CHECK_ERRNO(futex(hole, FUTEX_CMP_REQUEUE_PRIVATE, 1, number(1), words, 0), EFAULT);
  CHECK_ERRNO(
      futex(words, FUTEX_WAKE_OP_PRIVATE, 1, number(1), hole, FUTEX_OP(FUTEX_OP_SET, 0, FUTEX_OP_CMP_EQ, 0)),
      EFAULT);
  CHECK_ERRNO(futex(words, FUTEX_WAKE_OP_PRIVATE, 1, number(1), words + 1, 0x0f << 24 | 0x5u << 28), ENOSYS);
  munmap(hole, 8192);
}

int main() {
  refusals();
  join(start(refusals));
}
