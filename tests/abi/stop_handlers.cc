// abi: threads=4
// Job control as a shell and an editor do it: a handler of SIGTSTP that puts the terminal right, sets the default action,
// unblocks and raises the signal again (the process stops there, by SIGTSTP), and goes on after SIGCONT, whose own handler
// runs. A SIGTSTP that is blocked stops nothing until it is let through.
#include "abi.h"

static std::atomic<int> suspended{0}, resumed{0}, continued{0};

static int to_parent;

static void suspend(int signal) {
  ++suspended;
  struct sigaction before, standard = {};
  standard.sa_handler = SIG_DFL;
  CHECK_EQ(sigaction(signal, &standard, &before), 0);
  const sigset_t set = signal_set({signal});
  sigset_t old;
  raise(signal);
  CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, &old), 0);  // stops here
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, &old, nullptr), 0);
  CHECK_EQ(sigaction(signal, &before, nullptr), 0);
  while (continued < suspended) nap(kMs / 4);
  ++resumed;
  CHECK_EQ(write(to_parent, "c", 1), 1);
}

static pid_t job(int ready, int go) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child != 0) return child;
  setpgid(0, 0);
  install(SIGTSTP, suspend);
  to_parent = ready;
  install(SIGCONT, [](int) { ++continued; });
  std::atomic<bool> stop{false};
  const pthread_t computing = start([&] {
    while (!stop) burn(kMs / 4);
  });
  const pthread_t sleeping = start([&] {
    while (!stop) nap(kMs);
  });
  CHECK_EQ(write(ready, "r", 1), 1);
  while (resumed < 3) nap(kMs);
  while (continued < 3) nap(kMs);
  char byte;
  CHECK_EQ(read(go, &byte, 1),
           1);  // a stop that comes before its parent has asked hides that it was continued
  const sigset_t set = signal_set({SIGTTIN});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  raise(SIGTTIN);
  sigset_t pending;
  CHECK_EQ(sigpending(&pending), 0);
  CHECK_EQ(sigismember(&pending, SIGTTIN), 1);
  CHECK_EQ(write(ready, "b", 1), 1);
  nap(2 * kMs);
  CHECK_EQ(write(ready, "u", 1), 1);
  CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);  // stops here
  stop = true;
  join(computing);
  join(sleeping);
  CHECK_EQ(suspended, 3);
  _exit(9);
}

static void expect_stop(pid_t child, int signal) {
  int status = 0;
  CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
  if (!WIFSTOPPED(status)) FAIL("status 0x%x, not stopped", status);
  CHECK_EQ(WSTOPSIG(status), signal);
}

static void expect(int fd, char byte) {
  char got = 0;
  CHECK_EQ(read(fd, &got, 1), 1);
  CHECK_EQ(got, byte);
}

int main() {
  std::vector<pthread_t> threads;
  for (int i = 0; i < 4; ++i) threads.push_back(start([] {}));
  join_all(threads);
  int ready[2], go[2];
  CHECK_EQ(pipe(ready), 0);
  CHECK_EQ(pipe(go), 0);
  const pid_t child = job(ready[1], go[0]);
  expect(ready[0], 'r');
  for (int i = 0; i < 3; ++i) {
    CHECK_EQ(kill(child, SIGTSTP), 0);
    expect_stop(child, SIGTSTP);
    CHECK_EQ(kill(child, SIGCONT), 0);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, WCONTINUED), child);
    expect(ready[0],
           'c');  // else the next stop could discard a SIGCONT that is pending, or be taken by another thread
  }
  CHECK_EQ(write(go[1], "g", 1), 1);
  expect(ready[0], 'b');
  expect(ready[0], 'u');
  expect_stop(child, SIGTTIN);
  CHECK_EQ(kill(child, SIGCONT), 0);
  wait_exit(child, 9);
}
