// abi: threads=6
// Process groups and sessions (setpgid(2), setsid(2), credentials(7)), with a terminal of their own (pty(7), tcsetpgrp(3)): what a
// thread sets holds for the process; a background read stops the group by SIGTTIN; a stopped group that becomes orphaned is sent
// SIGHUP and SIGCONT; the end of the session's leader sends SIGHUP to the foreground group.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "process.h"

namespace {

int terminal_pair(std::string* name) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) skip("no pseudo terminals");
  CHECK_EQ(grantpt(master), 0);
  CHECK_EQ(unlockpt(master), 0);
  char path[64];
  CHECK_EQ(ptsname_r(master, path, sizeof path), 0);
  *name = path;
  return master;
}

void stopped_in_background(int terminal) {
  const pid_t reader = start_child([=] {
    alarm(15);  // nobody else ends what has a session of its own
    CHECK_EQ(setpgid(0, 0), 0);
    join(start([] {}));
    install(SIGTTIN, SIG_DFL);
    join(start([=] {
      char byte;
      CHECK_EQ(read(terminal, &byte, 1), 1);  // stops here until it is in the foreground
      _exit(byte == 'a' ? 5 : 6);
    }));
  });
  int status;
  do {
    CHECK_EQ(waitpid(reader, &status, WUNTRACED), reader);
  } while (!WIFSTOPPED(status));
  CHECK_EQ(WSTOPSIG(status), SIGTTIN);
  join(start([=] { CHECK_EQ(tcsetpgrp(terminal, reader), 0); }));
  CHECK_EQ(tcgetpgrp(terminal), reader);
  CHECK_EQ(kill(-reader, SIGCONT), 0);
  wait_exit(reader, 5);
  CHECK_EQ(tcsetpgrp(terminal, getpgrp()), 0);
}

void session(const std::string& name, int master) {
  alarm(18);
  join(start([] {
    const pid_t me = getpid();
    CHECK_EQ(setsid(), me);
    CHECK_ERRNO(setsid(), EPERM);
  }));
  CHECK(getsid(0) == getpid() && getpgrp() == getpid());
  CHECK_ERRNO(setpgid(0, 0), EPERM);  // a session's leader
  CHECK_ERRNO(setpgid(getpid() + 100'000'000, 0), ESRCH);
  const int terminal = open(name.c_str(), O_RDWR);
  CHECK(terminal >= 0);
  CHECK_EQ(ioctl(terminal, TIOCSCTTY, 0), 0);
  CHECK_EQ(tcgetsid(terminal), getpid());
  install(SIGTTOU, SIG_IGN);
  CHECK_EQ(write(master, "a\n", 2), 2);
  Crowd crowd;
  join(start([=] { stopped_in_background(terminal); }));
  crowd.end();
}

// Its parent ends while it is stopped.
void orphaned(int report) {
  const pid_t parent = start_child([=] {
    CHECK_EQ(setsid(), getpid());
    join(start([] {}));
    const pid_t child = start_child([=] {
      alarm(15);
      CHECK_EQ(setpgid(0, 0), 0);
      static int to;
      to = report;
      install(SIGHUP, [](int) {
        if (write(to, "h", 1) != 1) _exit(1);
        _exit(0);
      });
      join(start([] {}));
      start([] { nap(1000 * kSecond); });
      raise(SIGSTOP);
      for (;;) pause();
    });
    int status;
    CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
    CHECK(WIFSTOPPED(status));
    _exit(4);
  });
  wait_exit(parent, 4);
}

}  // namespace

int main() {
  Crowd crowd;
  std::string name;
  const int master = terminal_pair(&name);
  run_child([&] { session(name, master); });
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  join(start([&] { orphaned(ends[1]); }));
  char byte = 0;
  CHECK_EQ(read(ends[0], &byte, 1), 1);
  CHECK_EQ(byte, 'h');
  crowd.end();
}
