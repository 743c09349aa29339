// abi: threads=4 status=42 stdout=atexit
// exit() from a thread ends the process with its status, runs atexit functions there and flushes stdio.
#include "abi.h"

static pthread_t exiting;

int main() {
  atexit([] {
    CHECK(pthread_equal(pthread_self(), exiting) != 0);
    printf("atexit\n");
  });
  for (int i = 0; i < 3; ++i)
    start([] {
      for (;;) burn(kMs);
    });
  start([] {
    nap(10 * kMs);
    exiting = pthread_self();
    exit(42);
  });
  for (;;) pause();
}
