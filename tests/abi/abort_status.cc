// abi: threads=2 status=134 stats=none
// abort in a thread ends the process by SIGABRT.
#include "abi.h"

int main() {
  start([] {
    for (;;) burn(kMs);
  });
  start([] {
    nap(5 * kMs);
    abort();
  });
  for (;;) pause();
}
