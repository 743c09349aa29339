// abi: threads=2000 reused=500
// pthread_kill succeeds until the thread is joined, also at the moment at which it ends.
#include "abi.h"

int main() {
  for (int i = 0; i < 2000; ++i) {
    pthread_t thread = start([] {});
    for (int k = 0; k < 50; ++k) kill_perhaps_ended(thread, 0);
    join(thread);
  }
  pthread_t thread = start([] {});
  settle();
  kill_perhaps_ended(thread, 0);
  kill_perhaps_ended(thread, SIGTERM);
  kill_perhaps_ended(thread, 32, EINVAL);
  kill_perhaps_ended(thread, 33, EINVAL);
  join(thread);
}
