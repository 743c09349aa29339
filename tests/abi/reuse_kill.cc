// abi: threads=2000 reused=500
// pthread_kill succeeds until the thread is joined, also at the moment at which it ends.
#include "abi.h"

int main() {
  for (int i = 0; i < 2000; ++i) {
    pthread_t thread = start([] {});
    for (int k = 0; k < 50; ++k) CHECK_EQ(pthread_kill(thread, 0), 0);
    join(thread);
  }
  pthread_t thread = start([] {});
  settle();
  CHECK_EQ(pthread_kill(thread, 0), 0);
  CHECK_EQ(pthread_kill(thread, SIGTERM), 0);
  CHECK_EQ(pthread_kill(thread, 32), EINVAL);
  CHECK_EQ(pthread_kill(thread, 33), EINVAL);
  join(thread);
}
