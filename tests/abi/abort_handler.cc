// abi: threads=1 status=9 stats=none
// A handler for SIGABRT runs on the aborting thread.
#include "abi.h"

static pthread_t aborting;

int main() {
  install(SIGABRT, [](int) {
    CHECK(pthread_equal(pthread_self(), aborting) != 0);
    _exit(9);
  });
  join(start([] {
    aborting = pthread_self();
    abort();
  }));
}
