// abi: threads=40
// What a thread left deep in its stack is not there for the next one, and memory mapped afresh for a stack is zero.
#include <sys/mman.h>

#include "abi.h"

__attribute__((noinline)) static void soil() {
  volatile char block[2 << 20];
  for (size_t at = 0; at < sizeof block; ++at) block[at] = 0x5a;
}

__attribute__((noinline)) static void inspect() {
  pthread_attr_t own;
  CHECK_EQ(pthread_getattr_np(pthread_self(), &own), 0);
  void* address = nullptr;
  size_t size = 0;
  CHECK_EQ(pthread_attr_getstack(&own, &address, &size), 0);
  pthread_attr_destroy(&own);
  char here;
  const auto* low = static_cast<const char*>(address);
  const char* volatile top = &here;
  const char* high = top - 64 * 1024;
  for (const char* at = low + 4096; at < high; at += 509)
    if (*at != 0) FAIL("byte %td below the top is %02x", &here - at, static_cast<unsigned char>(*at));
}

int main() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  CHECK_EQ(pthread_attr_setstacksize(&attributes, 4 << 20), 0);
  for (int round = 0; round < 20; ++round) {
    join(start(soil, &attributes));
    join(start(inspect, &attributes));
  }
  for (int round = 0; round < 10; ++round) {
    constexpr size_t kSize = (8 << 20) + 4096;
    auto* stack = static_cast<char*>(
        mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0));
    CHECK(stack != MAP_FAILED);
    CHECK_EQ(mprotect(stack + 4096, kSize - 4096, PROT_READ | PROT_WRITE), 0);
    for (size_t at = 4096; at < kSize; at += 4096) {
      CHECK_EQ(stack[at], 0);
      stack[at] = 1;
    }
    CHECK_EQ(munmap(stack, kSize), 0);
  }
}
