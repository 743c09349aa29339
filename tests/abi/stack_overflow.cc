// abi: threads=1 status=139 stats=none upcall_stderr=overflow,runaway,262144|256.?K
// A thread that overflows its stack dies by SIGSEGV; under Upcall a message names the thread and the stack's size.
#include "abi.h"

static int deeper(int depth) {
  volatile char page[4096];
  page[0] = static_cast<char>(depth);
  if (depth < 0) return 0;
  return deeper(depth + 1) + page[0];
}

int main() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  CHECK_EQ(pthread_attr_setstacksize(&attributes, 262144), 0);
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
