// abi: threads=4
// Recursion through 7 MB of a default stack works, in several threads at once, and comes back intact.
#include <sys/resource.h>

#include "abi.h"

constexpr size_t kDeep = 7 << 20;

__attribute__((noinline)) static int deeper(const char* top, int id) {
  volatile char page[1024];
  page[0] = static_cast<char>(id);
  page[1023] = static_cast<char>(id + 1);
  const auto used = static_cast<size_t>(top - const_cast<const char*>(page));
  const int below = used >= kDeep ? 0 : deeper(top, id);
  CHECK_EQ(page[0], static_cast<char>(id));
  CHECK_EQ(page[1023], static_cast<char>(id + 1));
  return below + 1;
}

__attribute__((noinline)) static void one_block(int id) {
  volatile char block[kDeep];
  for (size_t at = 0; at < sizeof block; at += 4096) block[at] = static_cast<char>(id);
  sched_yield();
  for (size_t at = 0; at < sizeof block; at += 4096) CHECK_EQ(block[at], id);
}

int main() {
  rlimit limit;
  CHECK_EQ(getrlimit(RLIMIT_STACK, &limit), 0);
  if (limit.rlim_cur < 8u << 20) skip("stack limit below 8 MB");
  std::vector<pthread_t> threads;
  for (int id = 1; id <= 4; ++id)
    threads.push_back(start([id] {
      char top = 0;
      CHECK(deeper(&top, id) > 1000);
      one_block(id);
    }));
  join_all(threads);
}
