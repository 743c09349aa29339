// abi: threads=1 status=139 stats=none upcall_stderr=overflow,runaway,256.?K
// As stack_overflow, on memory that the program has given: the runtime knows nothing of that stack. So it is with all
// stacks on kernels without guard regions (before 6.13).
#include <sys/mman.h>

#include "abi.h"

static int deeper(int depth) {
  volatile char page[4096];
  page[0] = static_cast<char>(depth);
  if (depth < 0) return 0;
  return deeper(depth + 1) + page[0];
}

int main() {
  constexpr size_t kStack = 256 * 1024, kGuard = 16 * 1024;
  auto* memory = static_cast<char*>(
      mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(memory != MAP_FAILED);
  CHECK_EQ(mprotect(memory, kGuard, PROT_NONE), 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  CHECK_EQ(pthread_attr_setstack(&attributes, memory + kGuard, kStack), 0);
  start([] {
    for (;;) burn(kMs);
  });
  const pthread_t thread = start(
      [] {
        pthread_setname_np(pthread_self(), "runaway");
        deeper(0);
      },
      &attributes);
  join(thread);
}
