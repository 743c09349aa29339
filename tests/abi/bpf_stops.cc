// abi: threads=2 events=bpf plain=skip counters=bpf_loaded:1-1,bpf_lost:1-1
// The scheduler's events stop coming, as when an administrator detaches the programs: the sentinel judges by itself again.
#include "bpf.h"

int main() {
  need_events();
  block_unseen(50);
  *events_table() = 0;  // the process that is watched
  block_unseen(50);
  // The monitor looks at its ticks, while somebody waits for a processor.
  const pthread_t computing = start([] { burn(100 * kMs); });
  burn(100 * kMs);
  join(computing);
  block_unseen(50);
}
