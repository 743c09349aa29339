// abi: threads=0
// signal(7), "Interruption of system calls and library functions by stop signals": after SIGSTOP and SIGCONT, and after
// SIGTSTP whose default action stopped it, without any handler, calls that block go on and last as long as asked; some
// may end with EINTR (epoll_wait, semop, sigtimedwait and socket calls with time-outs), nothing else may.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>

#include "abi.h"

struct Shared {
  std::atomic<int> entered, done;
};
static Shared* shared;
static constexpr int64_t kTime = 120 * kMs;

template <class F>
static void timed(const char* name, bool may_be_interrupted, F call) {
  start([=] {
    const int64_t begin = now_ns();
    ++shared->entered;
    errno = 0;
    const long result = call();
    const int64_t took = now_ns() - begin;
    const bool interrupted = result == -1 && errno == EINTR;
    if (interrupted && !may_be_interrupted) FAIL("%s ended with EINTR", name);
    if (!interrupted && took < kTime - kMs)
      FAIL("%s took only %lld us", name, static_cast<long long>(took / 1000));
    // The stops are part of the time. A call begun anew at each of them would take twice as long.
    if (took > kTime + 600 * kMs * time_factor())
      FAIL("%s took %lld ms", name, static_cast<long long>(took / kMs));
    ++shared->done;
  });
}

static void child() {
  static uint32_t word = 0;
  static int pair[2];
  const int queue = epoll_create1(0), semaphore = semget(IPC_PRIVATE, 1, 0600);
  const timespec time = to_timespec(kTime);
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const timeval limit = {0, kTime / 1000};
  CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  timed("nanosleep", false, [=] { return nanosleep(&time, nullptr); });
  timed("poll", false, [] { return poll(nullptr, 0, kTime / kMs); });
  timed("select", false, [] {
    timeval left = {0, kTime / 1000};
    return select(0, nullptr, nullptr, nullptr, &left);
  });
  timed("futex", false, [=] { return futex(&word, FUTEX_WAIT_PRIVATE, 0, &time); });
  timed("epoll_wait", true, [=] {
    epoll_event event;
    return epoll_wait(queue, &event, 1, kTime / kMs);
  });
  timed("semtimedop", true, [=] {
    sembuf down = {0, -1, 0};
    return semtimedop(semaphore, &down, 1, &time);
  });
  timed("recv", true, [] {
    char byte;
    return recv(pair[0], &byte, 1, 0);
  });
  const sigset_t set = signal_set({SIGHUP});
  sigprocmask(SIG_BLOCK, &set, nullptr);
  timed("sigtimedwait", true, [=] { return sigtimedwait(&set, nullptr, &time); });
  while (shared->done < 8) nap(kMs);
  semctl(semaphore, 0, IPC_RMID);
  _exit(0);
}

int main() {
  shared =
      static_cast<Shared*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(shared != MAP_FAILED);
  const pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    setpgid(0, 0);
    child();
  }
  while (shared->entered < 8) nap(kMs / 2);
  for (int signal : {SIGSTOP, SIGTSTP, SIGSTOP}) {
    CHECK_EQ(kill(pid, signal), 0);
    int status = 0;
    CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;  // on a slow machine the time is over
    CHECK(WIFSTOPPED(status));
    CHECK_EQ(WSTOPSIG(status), signal);
    nap(5 * kMs);
    CHECK_EQ(kill(pid, SIGCONT), 0);
    nap(5 * kMs);
  }
  wait_exit(pid, 0);
}
