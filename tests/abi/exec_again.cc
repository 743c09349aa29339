// abi: threads=2
// A process that executes its own program many times, from different threads, each time with threads in every state: pid, parent
// and descriptors stay, nothing of the earlier lives is left (execve(2)): no kernel threads, no descriptors.
#include <fcntl.h>

#include "process.h"

namespace {

constexpr int lives = 8;

int open_files() {
  int count = 0;
  for (int fd = 0; fd < 64; ++fd) count += syscall(SYS_fcntl, fd, F_GETFD) >= 0;
  return count;
}

void live(int life, int files, pid_t process) {
  CHECK_EQ(getpid(), process);
  CHECK_EQ(kernel_threads(), 1);
  CHECK_EQ(open_files(), files);
  if (life == lives) {
    use_threads(2);
    return;
  }
  const auto next = [=] {
    const std::string self = executable_directory() + "/exec_again", a = std::to_string(life + 1),
                      b = std::to_string(files), c = std::to_string(process);
    execl(self.c_str(), "exec_again", a.c_str(), b.c_str(), c.c_str(), nullptr);
    FAIL("errno %d", errno);
  };
  // Its pipe goes with this life.
  start([] {
    for (;;) burn(kMs);
  });
  start([] { nap(1000 * kSecond); });
  start([] {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
  });
  start([] {
    int ends[2];
    char byte;
    if (pipe2(ends, O_CLOEXEC) == 0 && read(ends[0], &byte, 1) == 0) return;
  });
  nap(kMs / 2);
  if (life % 2) next();
  start(next);
  for (;;) pause();
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 4)
    live(atoi(arguments[1]), atoi(arguments[2]), atoi(arguments[3]));
  else
    live(0, open_files(), getpid());
}
