// abi: threads=20
// pthread_attr_setstack: the thread runs on the memory given, all of it is its own, and it may be used again or
// freed after the join.
#include <sys/mman.h>

#include "abi.h"

int main() {
  constexpr size_t kSize = 256 * 1024;
  for (int round = 0; round < 5; ++round) {
    std::vector<void*> stacks;
    std::vector<pthread_t> threads;
    for (int i = 0; i < 4; ++i) {
      void* stack = i % 2 == 0
                        ? aligned_alloc(4096, kSize)
                        : mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      CHECK(stack != nullptr && stack != MAP_FAILED);
      stacks.push_back(stack);
      pthread_attr_t attributes;
      pthread_attr_init(&attributes);
      CHECK_EQ(pthread_attr_setstack(&attributes, stack, kSize), 0);
      threads.push_back(start(
          [stack] {
            char local[200 * 1024];
            memset(local, 7, sizeof local);
            CHECK(static_cast<char*>(stack) <= local &&
                  local + sizeof local <= static_cast<char*>(stack) + kSize);
            pthread_attr_t own;
            CHECK_EQ(pthread_getattr_np(pthread_self(), &own), 0);
            void* address;
            size_t size;
            CHECK_EQ(pthread_attr_getstack(&own, &address, &size), 0);
            CHECK(address == stack);
            CHECK_EQ(size, kSize);
            pthread_attr_destroy(&own);
            nap(kMs);
            for (size_t at = 0; at < sizeof local; at += 512) CHECK_EQ(local[at], 7);
          },
          &attributes));
    }
    join_all(threads);
    for (size_t i = 0; i < stacks.size(); ++i) {
      if (i % 2 == 0)
        free(stacks[i]);
      else
        CHECK_EQ(munmap(stacks[i], kSize), 0);
    }
  }
}
