// abi: threads=4
// signal(7): read and write on a terminal are "slow" calls: restarted after a handler with SA_RESTART, EINTR without.
// What was typed meanwhile is not lost.
#include <fcntl.h>
#include <termios.h>

#include "interrupt.h"

int main() {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  CHECK(master >= 0);
  CHECK_EQ(grantpt(master) | unlockpt(master), 0);
  const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
  CHECK(terminal >= 0);
  termios mode;
  CHECK_EQ(tcgetattr(terminal, &mode), 0);
  mode.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  CHECK_EQ(tcsetattr(terminal, TCSANOW, &mode), 0);
  char line[64];
  try_signals({
      // Canonical: the half line is there already, the rest releases the call.
      {"read of a line", [&] { return with_errno(read(terminal, line, sizeof line)); },
       [&] { CHECK_EQ(write(master, "c\n", 2), 2); }, 2, Restart::yes},
      {"read of the other side", [&] { return with_errno(read(master, line, sizeof line)); },
       [&] { CHECK_EQ(write(terminal, "abc", 3), 3); }, 3, Restart::yes},
  });
  CHECK_EQ(write(master, "half", 4), 4);
  std::atomic<int> done{0};
  const pthread_t reader = start([&] {
    char text[64];
    CHECK_ERRNO(read(terminal, text, sizeof text), EINTR);
    ++done;
    CHECK_EQ(read(terminal, text, sizeof text), 9);
    CHECK_EQ(memcmp(text, "half full", 9), 0);
    ++done;
  });
  while (done == 0) {
    pthread_kill(reader, SIGUSR2);
    nap(kMs / 2);
  }
  install(SIGUSR2, SIG_IGN);
  CHECK_EQ(write(master, " full\004", 6), 6);
  join(reader);
  CHECK_EQ(done, 2);
}
