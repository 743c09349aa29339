// abi: threads=1 status=139 stats=none
// A fault in a thread, not handled, ends the process by SIGSEGV.
#include "abi.h"

static int* volatile nowhere = nullptr;

int main() {
  join(start([] { *nowhere = 1; }));
  return 0;
}
