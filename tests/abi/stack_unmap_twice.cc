// abi: threads=1
// A mapping for a stack that is unmapped twice: the second time nothing is there. Later mappings are all different.
#include <sys/mman.h>

#include <set>
#include <thread>

#include "abi.h"

int main() {
  constexpr size_t kSize = 256 * 1024;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK;
  auto map = [] {
    void* p = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    CHECK(p != MAP_FAILED);
    return static_cast<char*>(p);
  };
  std::thread([&] {}).join();
  char* first = map();
  first[kSize - 1] = 1;
  CHECK_EQ(munmap(first, kSize), 0);
  CHECK_EQ(munmap(first, kSize), 0);
  std::set<char*> seen;
  for (int i = 0; i < 40; ++i) {
    char* p = map();
    CHECK(seen.insert(p).second);
    CHECK_EQ(p[kSize - 1], 0);
    p[kSize - 1] = static_cast<char>(i + 1);
  }
  for (char* p : seen) CHECK_EQ(munmap(p, kSize), 0);
}
