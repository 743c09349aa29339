// abi: threads=6
// clone3(2): CLONE_PIDFD, CLONE_PARENT_SETTID and CHILD_SETTID, CLONE_CLEAR_SIGHAND (handlers become the default, what is
// ignored stays so), exit_signal 0 (no signal; found by __WCLONE and __WALL only); what it refuses.
#include <linux/sched.h>
#include <poll.h>

#include "process.h"

#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ULL
#endif

namespace {

std::atomic<int> children{0}, usr1{0};

long clone3(clone_args& arguments) { return syscall(SYS_clone3, &arguments, sizeof arguments); }

template <class F>
pid_t make(clone_args arguments, F body) {
  const long child = clone3(arguments);
  if (child == -1 && errno == ENOSYS) skip("no clone3");
  CHECK(child >= 0);
  if (child != 0) return static_cast<pid_t>(child);
  CHECK_EQ(syscall(SYS_gettid), getpid());
  body();
  _exit(7);
}

// On Upcall a handler for SIGCHLD may run a little after the wait for the child.
int children_settled() {
  settle();
  return children;
}

void with_descriptor() {
  const int before = children_settled();
  int descriptor = -1, parents = 0, childs = 0, ends[2];
  CHECK_EQ(pipe(ends), 0);
  clone_args arguments = {};
  arguments.flags = CLONE_PIDFD | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID;
  arguments.pidfd = reinterpret_cast<uint64_t>(&descriptor);
  arguments.parent_tid = reinterpret_cast<uint64_t>(&parents);
  arguments.child_tid = reinterpret_cast<uint64_t>(&childs);
  arguments.exit_signal = SIGCHLD;
  const pid_t child = make(arguments, [&] {
    CHECK_EQ(childs, getpid());
    char byte;
    CHECK_EQ(read(ends[0], &byte, 1), 1);
  });
  CHECK_EQ(parents, child);
  CHECK_EQ(childs, 0);
  pollfd ended = {descriptor, POLLIN, 0};
  CHECK_EQ(poll(&ended, 1, 0), 0);
  CHECK_EQ(write(ends[1], "x", 1), 1);
  int ready;
  while ((ready = poll(&ended, 1, 10'000)) == -1 && errno == EINTR) {
  }
  CHECK_EQ(ready, 1);
  wait_exit(child, 7);
  while (children == before) nap(kMs / 4);
  close(descriptor), close(ends[0]), close(ends[1]);
}

void without_signal() {
  const int before = children_settled();
  const pid_t child = make(clone_args{}, [] {});
  CHECK_ERRNO(waitpid(child, nullptr, 0), ECHILD);
  int status = 0;
  CHECK_EQ(waitpid(child, &status, __WCLONE), child);
  CHECK_EQ(WEXITSTATUS(status), 7);
  CHECK(waitpid(make(clone_args{}, [] {}), &status, __WALL) > 0);
  CHECK_EQ(children.load(), before);
}

void without_handlers() {
  clone_args arguments = {};
  arguments.flags = CLONE_CLEAR_SIGHAND;
  arguments.exit_signal = SIGCHLD;
  const auto in_child = [] {
    struct sigaction action;
    for (int signal : {SIGUSR1, SIGCHLD, SIGSEGV}) {
      CHECK_EQ(sigaction(signal, nullptr, &action), 0);
      CHECK(action.sa_handler == SIG_DFL);
    }
    CHECK_EQ(sigaction(SIGPIPE, nullptr, &action), 0);
    CHECK(action.sa_handler == SIG_IGN);
    use_threads(2);
    CHECK_EQ(sigaction(SIGUSR1, nullptr, &action), 0);
    CHECK(action.sa_handler == SIG_DFL);
  };
  wait_exit(make(arguments, in_child), 7);
  const int status = wait_status(make(arguments, [] { raise(SIGUSR1); }));
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
  arguments.flags = 0;
  wait_exit(make(arguments,
                 [] {
                   raise(SIGUSR1);
                   CHECK_EQ(usr1.load(), 1);
                 }),
            7);
}

void refused() {
  clone_args arguments = {};
  arguments.flags = CLONE_SIGHAND;  // without CLONE_VM
  CHECK_ERRNO(clone3(arguments), EINVAL);
  arguments.flags = CLONE_THREAD | CLONE_SIGHAND | CLONE_VM | CLONE_PIDFD | CLONE_DETACHED;
  CHECK_ERRNO(clone3(arguments), EINVAL);
  arguments.flags = 0;
  arguments.stack = 4096;  // without a size
  CHECK_ERRNO(clone3(arguments), EINVAL);
  arguments.stack = 0;
  arguments.exit_signal = 100;
  CHECK_ERRNO(clone3(arguments), EINVAL);
  CHECK_ERRNO(syscall(SYS_clone3, &arguments, 8), EINVAL);
  CHECK_ERRNO(syscall(SYS_clone3, nullptr, sizeof arguments), EFAULT);
}

}  // namespace

int main() {
  Crowd crowd;
  install(
      SIGCHLD, [](int) { ++children; }, SA_RESTART);
  install(SIGUSR1, [](int) { ++usr1; });
  install(SIGSEGV, [](int) { _exit(66); });
  install(SIGPIPE, SIG_IGN);
  for (int round = 0; round < 2; ++round)
    join(start([] {
      with_descriptor();
      without_signal();
      without_handlers();
      refused();
    }));
  CHECK(usr1 == 0);
  install(SIGCHLD, SIG_DFL);
  crowd.end();
}
