// abi: threads=2 events=bpf plain=skip unseen=1 counters=bpf_loaded:1-1,bpf_lost:0-0
// What makes the scheduler's events come is not the program's to see or to close; a forked child has its own.
#include "bpf.h"

int main() {
  need_events();
  CHECK_EQ(bpf_descriptors(), 0);
  CHECK_EQ(syscall(SYS_close_range, 3, ~0u, 0), 0);
  block_unseen(50);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    CHECK(events_table() == nullptr);
    block_unseen(50);
    CHECK(events_table() != nullptr);
    CHECK_EQ(bpf_descriptors(), 0);
    _exit(5);
  }
  int status;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 5);
  block_unseen(50);
}
