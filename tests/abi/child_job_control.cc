// abi: threads=1
// Job control (tty(4), POSIX "Terminal Access Control"): a background process that reads its terminal or changes it (tcsetattr,
// tcsetpgrp) is stopped by SIGTTIN or SIGTTOU and makes the call when it is continued; a handler runs instead; who blocks or
// ignores the signal gets EIO from a read, and changes the terminal; so does a read in an orphaned group.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "process.h"

namespace {

int terminal, master;
std::atomic<int> handled{0};

// In a thread of a process in a group of its own, in the background; another one of its threads computes.
template <class F>
pid_t background(F body) {
  const pid_t child = start_child([&] {
    CHECK_EQ(setpgid(0, 0), 0);
    signal(SIGTTOU, SIG_DFL);
    alarm(15);  // nobody else ends what has a session of its own
    std::atomic<bool> stop{false};
    const pthread_t computing = start([&] {
      while (!stop) burn(100'000);
    });
    join(start(body));
    stop = true;
    join(computing);
  });
  return child;
}

void stopped(pid_t child, int signal) {
  int status = 0;
  CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
  if (!WIFSTOPPED(status) || WSTOPSIG(status) != signal)
    FAIL("status 0x%x, not stopped by %d", status, signal);
}

void foreground(pid_t group) { CHECK_EQ(tcsetpgrp(terminal, group), 0); }

void resume(pid_t child) {
  foreground(child);
  CHECK_EQ(kill(-child, SIGCONT), 0);
  wait_exit(child, 0);
  foreground(getpgrp());
}

void reads() {
  CHECK_EQ(write(master, "a\n", 2), 2);
  pid_t child = background([] {
    char text[4];
    CHECK_EQ(read(terminal, text, sizeof text), 2);
    CHECK_EQ(text[0], 'a');
  });
  stopped(child, SIGTTIN);
  resume(child);

  wait_exit(background([] {
              char byte;
              const sigset_t blocked = signal_set({SIGTTIN});
              CHECK_EQ(pthread_sigmask(SIG_BLOCK, &blocked, nullptr), 0);
              CHECK_ERRNO(read(terminal, &byte, 1), EIO);
              sigset_t pending;
              CHECK_EQ(sigpending(&pending), 0);
              CHECK_EQ(sigismember(&pending, SIGTTIN), 0);
            }),
            0);
  wait_exit(background([] {
              char byte;
              install(SIGTTIN, SIG_IGN);
              CHECK_ERRNO(read(terminal, &byte, 1), EIO);
            }),
            0);
  wait_exit(background([] {
              char byte;
              install(SIGTTIN, [](int) { ++handled; });
              CHECK_ERRNO(read(terminal, &byte, 1), EINTR);
              CHECK(handled > 0);
            }),
            0);
}

void changes() {
  termios now;
  CHECK_EQ(tcgetattr(terminal, &now), 0);
  pid_t child = background([&] { CHECK_EQ(tcsetattr(terminal, TCSANOW, &now), 0); });
  stopped(child, SIGTTOU);
  resume(child);
  child = background([] { CHECK_EQ(tcsetpgrp(terminal, getpgrp()), 0); });
  stopped(child, SIGTTOU);
  CHECK_EQ(tcgetpgrp(terminal), getpgrp());
  resume(child);
  wait_exit(background([&] {
              const sigset_t blocked = signal_set({SIGTTOU});
              CHECK_EQ(pthread_sigmask(SIG_BLOCK, &blocked, nullptr), 0);
              CHECK_EQ(tcsetattr(terminal, TCSANOW, &now), 0);
            }),
            0);
  wait_exit(background([&] {
              install(SIGTTOU, [](int) { ++handled; });
              handled = 0;
              CHECK_ERRNO(tcsetattr(terminal, TCSANOW, &now), EINTR);
              CHECK(handled > 0);
              install(SIGTTOU, SIG_IGN);
              CHECK_EQ(tcsetattr(terminal, TCSANOW, &now), 0);
            }),
            0);
}

void orphaned() {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  wait_exit(start_child([&] {
              const pid_t parent = getpid();
              background([&] {
                char byte;
                while (getppid() == parent) nap(kMs / 4);
                const bool refused = read(terminal, &byte, 1) == -1 && errno == EIO;
                CHECK_EQ(write(ends[1], refused ? "y" : "n", 1), 1);
              });
            }),
            0);
  char byte = 0;
  CHECK_EQ(read(ends[0], &byte, 1), 1);
  CHECK_EQ(byte, 'y');
}

}  // namespace

int main() {
  master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) skip("no pseudo terminals");
  CHECK_EQ(grantpt(master), 0);
  CHECK_EQ(unlockpt(master), 0);
  join(start([] {}));
  run_child([] {
    CHECK_EQ(setsid(), getpid());
    alarm(18);
    terminal = open(ptsname(master), O_RDWR);
    CHECK(terminal >= 0);
    CHECK_EQ(ioctl(terminal, TIOCSCTTY, 0), 0);
    signal(SIGTTIN, SIG_DFL), signal(SIGTTOU, SIG_IGN), signal(SIGHUP, SIG_IGN);
    reads();
    changes();
    orphaned();
  });
}
