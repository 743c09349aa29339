// abi: threads=4 plain=skip counters=driver_hooks:5,driver_blocks:5
// Threads compute on all processors: requests are found all the same, by polls at hooks, or by a blocking call whose end
// stops who computes. The program itself never yields.
#include "requests.h"

#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>

namespace {

// Something outside the program that takes a millisecond: another process writes into shared memory, or a pipe.
struct Source {
  int ask[2], answer[2];
  bool can_block;
};

int poll_pipe(void* context, upcall_request*) {
  auto* s = static_cast<Source*>(context);
  int bytes = 0;
  CHECK_EQ(ioctl(s->answer[0], FIONREAD, &bytes), 0);
  char byte;
  return bytes > 0 && read(s->answer[0], &byte, 1) == 1;
}

int submit(void* context, upcall_request*) {
  return write(static_cast<Source*>(context)->ask[1], "?", 1) == 1 ? 0 : EIO;
}

int wait_pipe(void* context, uint64_t timeout) {
  pollfd p = {static_cast<Source*>(context)->answer[0], POLLIN, 0};
  return poll(&p, 1, timeout == UPCALL_FOREVER ? -1 : static_cast<int>(timeout / kMs) + 1) < 0 ? -errno : 0;
}

void answers(const Source& s) {
  char byte;
  while (read(s.ask[0], &byte, 1) == 1) {
    nap(kMs);
    if (write(s.answer[1], "!", 1) != 1) break;
  }
  _exit(0);
}

void median_within(bool can_block, int64_t limit) {
  Source s = {};
  CHECK(pipe(s.ask) == 0 && pipe(s.answer) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(s.ask[1]);
    close(s.answer[0]);
    answers(s);
  }
  close(s.ask[0]);
  upcall_driver_ops ops = {};
  ops.size = sizeof ops;
  ops.submit = submit;
  ops.poll = poll_pipe;
  ops.depth = 1;
  if (can_block) {
    ops.wait_group = wait_pipe;
    ops.wake = [](void*) {};
    ops.flags = UPCALL_WAIT_SEES_NEW;
  }
  upcall_driver* d;
  CHECK_EQ(upcall_driver_register(&d, &ops, &s), 0);
  std::vector<int64_t> took;
  for (int i = 0; i < 30; ++i) {
    const int64_t begun = now_ns();
    upcall_request r = {};
    CHECK_EQ(upcall_submit(d, &r), 0);
    CHECK_EQ(upcall_wait(&r, UPCALL_FOREVER), 0);
    took.push_back(now_ns() - begun);
  }
  std::sort(took.begin(), took.end());
  if (took[15] > limit * time_factor())
    FAIL("%s: half of the requests took more than %lld us", can_block ? "blocking" : "polling",
         static_cast<long long>(took[15] / 1000));
  CHECK_EQ(upcall_driver_unregister(d), 0);
  close(s.ask[1]);
  int status;
  CHECK_EQ(waitpid(child, &status, 0), child);
}

}  // namespace

int main() {
  std::atomic<bool> over{false};
  std::vector<pthread_t> computing;
  for (int i = 0; i < 2; ++i)
    computing.push_back(start([&] {
      while (!over) burn(kMs);
    }));
  median_within(false, 60 * kMs);
  median_within(true, 30 * kMs);
  over = true;
  join_all(computing);
}
