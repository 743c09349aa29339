// abi: threads=1
// fork from main, before and after threads were made; the child may return from main or end by exit() or a signal.
#include "abi.h"

int main() {
  pid_t child = fork();
  if (child == 0) {
    int result = 0;
    join(start([&result] { result = 21; }));
    exit(result);
  }
  wait_exit(child, 21);
  join(start([] {}));
  child = fork();
  if (child == 0) return 22;
  wait_exit(child, 22);
  child = fork();
  if (child == 0) {
    start([] { raise(SIGKILL); });
    for (;;) pause();
  }
  CHECK_EQ(WTERMSIG(wait_status(child)), SIGKILL);
}
