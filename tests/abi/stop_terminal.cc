// abi: threads=0
// termios(3), credentials(7): a process in the background that reads its terminal is stopped by SIGTTIN, one that changes
// its settings by SIGTTOU, in whichever thread; who ignores or blocks SIGTTIN gets EIO from read; who ignores or blocks
// SIGTTOU may change them; a handler runs instead, and the call ends with EINTR, also where two threads read.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "abi.h"

static int terminal;
static std::atomic<int> handled{0};

template <class F>
static pid_t background(F body) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    CHECK_EQ(setpgid(0, 0), 0);
    join(start(body));
    _exit(5);
  }
  setpgid(child, child);
  return child;
}

static void to_foreground(pid_t group) { CHECK_EQ(tcsetpgrp(terminal, group), 0); }

static void expect_stop(pid_t child, int signal) {
  int status = 0;
  CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
  if (!WIFSTOPPED(status)) FAIL("status 0x%x, not stopped by %d", status, signal);
  CHECK_EQ(WSTOPSIG(status), signal);
}

// Each is told by its handler, neither stops the process.
static void two_readers() {
  install(SIGTTIN, [](int) { ++handled; });
  const auto reader = [] {
    for (int i = 0; i < 200; ++i) {
      char byte;
      CHECK_ERRNO(read(terminal, &byte, 1), EINTR);
    }
  };
  const pthread_t first = start(reader), second = start(reader);
  const sigset_t set = signal_set({SIGTTIN});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  join(first);
  join(second);
}

// The leader of a session with the terminal. It ignores SIGTTOU, as shells do.
static void shell(int master) {
  CHECK(setsid() != -1);
  terminal = open(ptsname(master), O_RDWR);
  CHECK(terminal >= 0);
  ioctl(terminal, TIOCSCTTY, 0);
  CHECK_EQ(tcgetpgrp(terminal), getpgrp());
  install(SIGTTOU, SIG_IGN);
  join(start([] {}));

  pid_t child = background([] {
    char line[8];
    CHECK_EQ(read(terminal, line, sizeof line), 3);
    CHECK_EQ(memcmp(line, "ab\n", 3), 0);
  });
  expect_stop(child, SIGTTIN);
  to_foreground(child);
  CHECK_EQ(kill(child, SIGCONT), 0);
  CHECK_EQ(write(master, "ab\n", 3), 3);
  wait_exit(child, 5);
  to_foreground(getpgrp());

  for (bool blocked : {false, true})
    wait_exit(background([blocked] {
                const sigset_t set = signal_set({SIGTTIN});
                if (blocked)
                  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
                else
                  install(SIGTTIN, SIG_IGN);
                char byte;
                CHECK_ERRNO(read(terminal, &byte, 1), EIO);
              }),
              5);
  wait_exit(background([] {
              install(SIGTTIN, [](int) { ++handled; });
              char byte;
              CHECK_ERRNO(read(terminal, &byte, 1), EINTR);
              CHECK(handled > 0);
            }),
            5);
  wait_exit(background(two_readers), 5);

  child = background([] {
    install(SIGTTOU, SIG_DFL);
    termios mode;
    CHECK_EQ(tcgetattr(terminal, &mode), 0);
    CHECK_EQ(tcsetattr(terminal, TCSANOW, &mode), 0);
  });
  expect_stop(child, SIGTTOU);
  to_foreground(child);
  CHECK_EQ(kill(child, SIGCONT), 0);
  wait_exit(child, 5);
  to_foreground(getpgrp());
  wait_exit(background([] {  // ignored, as inherited
              termios mode;
              CHECK_EQ(tcgetattr(terminal, &mode), 0);
              CHECK_EQ(tcsetattr(terminal, TCSANOW, &mode), 0);
            }),
            5);
  _exit(6);
}

int main() {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  CHECK(master >= 0);
  CHECK_EQ(grantpt(master) | unlockpt(master), 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) shell(master);
  wait_exit(child, 6);
}
