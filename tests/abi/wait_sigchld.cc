// abi: threads=6
// SIGCHLD (sigaction(2), wait(2)): its siginfo tells how the child ended, stopped and went on; SA_NOCLDSTOP: not of stops;
// SIG_IGN or SA_NOCLDWAIT: children leave no zombie, wait waits for all of them and answers ECHILD.
#include "process.h"

namespace {

std::atomic<int> count{0}, code{0}, status{0}, pid{0};

void note(int, siginfo_t* info, void*) {
  code = info->si_code, status = info->si_status, pid = info->si_pid;
  ++count;
}

void expect(int wanted_code, int wanted_status, pid_t child, int number) {
  while (count < number) nap(kMs / 4);
  CHECK_EQ(count.load(), number);
  CHECK_EQ(code.load(), wanted_code);
  CHECK_EQ(status.load(), wanted_status);
  CHECK_EQ(pid.load(), child);
}

pid_t paused() {
  return start_child([] {
    for (;;) pause();
  });
}

}  // namespace

int main() {
  Crowd crowd;
  join(start([] {
    install_info(SIGCHLD, note, SA_RESTART);
    pid_t child = start_child([] { _exit(9); });
    expect(CLD_EXITED, 9, child, 1);
    wait_exit(child, 9);
    child = paused();
    CHECK_EQ(kill(child, SIGSTOP), 0);
    expect(CLD_STOPPED, SIGSTOP, child, 2);
    CHECK_EQ(kill(child, SIGCONT), 0);
    expect(CLD_CONTINUED, SIGCONT, child, 3);
    CHECK_EQ(kill(child, SIGKILL), 0);
    expect(CLD_KILLED, SIGKILL, child, 4);
    CHECK_EQ(WTERMSIG(wait_status(child)), SIGKILL);

    install_info(SIGCHLD, note, SA_RESTART | SA_NOCLDSTOP);
    child = paused();
    int state = 0;
    CHECK_EQ(kill(child, SIGSTOP), 0);
    while (waitpid(child, &state, WUNTRACED) == -1) CHECK_EQ(errno, EINTR);
    CHECK_EQ(kill(child, SIGCONT), 0);
    while (waitpid(child, &state, WCONTINUED) == -1) CHECK_EQ(errno, EINTR);
    CHECK_EQ(kill(child, SIGTERM), 0);
    expect(CLD_KILLED, SIGTERM, child, 5);
    wait_status(child);

    // Nothing is left of them; whether SIGCHLD is sent with SA_NOCLDWAIT is up to the system: Linux does.
    install_info(SIGCHLD, note, SA_RESTART | SA_NOCLDWAIT);
    child = start_child([] { _exit(3); });
    expect(CLD_EXITED, 3, child, 6);
    while (waitpid(child, nullptr, 0) == -1 && errno != ECHILD) CHECK_EQ(errno, EINTR);
    CHECK_ERRNO(kill(child, 0), ESRCH);
    for (int i = 0; i < 3; ++i) start_child([i] { nap(i * kMs); });
    pid_t result;
    while ((result = wait(nullptr)) == -1 && errno == EINTR) {
    }
    CHECK(result == -1 && errno == ECHILD);

    const int before = count;
    install(SIGCHLD, SIG_IGN);
    for (int i = 0; i < 3; ++i) start_child([i] { nap(i * kMs); });
    CHECK_ERRNO(wait(nullptr), ECHILD);
    CHECK(system("exit 4") == -1 && errno == ECHILD);
    install(SIGCHLD, SIG_DFL);
    wait_exit(start_child([] { _exit(8); }), 8);
    CHECK(count.load() <= before + 3);
    CHECK_EQ(WEXITSTATUS(system("exit 4")), 4);
  }));
  crowd.end();
}
