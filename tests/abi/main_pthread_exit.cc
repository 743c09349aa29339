// abi: threads=8 stdout=8
// pthread_exit from main leaves the others alive; the last of them ends the process with status 0.
#include "abi.h"

static std::atomic<int> left{8};

int main() {
  for (int i = 0; i < 8; ++i)
    pthread_detach(start([i] {
      nap((20 + 5 * i) * kMs);
      burn(2 * kMs);
      if (--left == 0) printf("8\n");
    }));
  pthread_exit(nullptr);
}
