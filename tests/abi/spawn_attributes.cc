// abi: threads=7
// posix_spawn(3): every attribute: SETSIGMASK, SETSIGDEF, SETPGROUP, SETSID, RESETIDS, SETSCHEDULER (and SETSCHEDPARAM), from a
// thread with others beside it. Without them: the mask of the calling thread, what was ignored ignored, what was caught default.
#include <sched.h>
#include <spawn.h>

#include "process.h"

namespace {

// In the spawned program: what it finds, as text.
int tell() {
  sigset_t mask;
  CHECK_EQ(sigprocmask(SIG_SETMASK, nullptr, &mask), 0);
  const auto disposition = [](int signal) {
    struct sigaction action;
    CHECK_EQ(sigaction(signal, nullptr, &action), 0);
    return action.sa_handler == SIG_DFL ? 'd' : action.sa_handler == SIG_IGN ? 'i' : 'h';
  };
  printf("%d%d%c%c%c %d %d %d %d\n", sigismember(&mask, SIGUSR1), sigismember(&mask, SIGUSR2),
         disposition(SIGUSR1), disposition(SIGHUP), disposition(SIGPIPE), getpgrp() == getpid(),
         getsid(0) == getpid(), geteuid() == getuid(), sched_getscheduler(0));
  return 0;
}

std::string spawn(short flags, const posix_spawnattr_t* given = nullptr) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (given) attributes = *given;
  CHECK_EQ(posix_spawnattr_setflags(&attributes, flags), 0);
  int ends[2];
  CHECK_EQ(pipe2(ends, 02000000 /* O_CLOEXEC */), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  const std::string self = executable_directory() + "/spawn_attributes";
  const char* words[] = {self.c_str(), "tell", nullptr};
  pid_t child;
  CHECK_EQ(posix_spawn(&child, self.c_str(), &actions, &attributes, const_cast<char**>(words), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  return text_of(child, ends);
}

void expect(const std::string& got, const std::string& wanted) {
  if (got != wanted) FAIL("'%s', not '%s'", got.c_str(), wanted.c_str());
}

}  // namespace

int main(int count, char**) {
  if (count > 1) return tell();
  Crowd crowd;
  install(SIGUSR1, [](int) {});
  install(SIGHUP, SIG_IGN);
  join(start([] {
    const sigset_t blocked = signal_set({SIGUSR1}), others = signal_set({SIGUSR2}),
                   to_default = signal_set({SIGHUP});
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &blocked, nullptr), 0);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    const std::string policy = std::to_string(sched_getscheduler(0)), ids = " 1 " + policy + "\n";
    expect(spawn(0), "10did 0 0" + ids);
    posix_spawnattr_setsigmask(&attributes, &others);
    expect(spawn(POSIX_SPAWN_SETSIGMASK, &attributes), "01did 0 0" + ids);
    posix_spawnattr_setsigdefault(&attributes, &to_default);
    expect(spawn(POSIX_SPAWN_SETSIGDEF, &attributes), "10ddd 0 0" + ids);
    posix_spawnattr_setpgroup(&attributes, 0);
    expect(spawn(POSIX_SPAWN_SETPGROUP, &attributes), "10did 1 0" + ids);
    expect(spawn(POSIX_SPAWN_SETSID, &attributes), "10did 1 1" + ids);
    expect(spawn(POSIX_SPAWN_RESETIDS, &attributes), "10did 0 0" + ids);
    const sched_param priority = {};
    posix_spawnattr_setschedparam(&attributes, &priority);
    posix_spawnattr_setschedpolicy(&attributes, SCHED_OTHER);
    expect(spawn(POSIX_SPAWN_SETSCHEDULER, &attributes), "10did 0 0 1 0\n");
    // Refused in the child: posix_spawn says so.
    posix_spawnattr_setschedpolicy(&attributes, SCHED_RR);
    CHECK_EQ(posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSCHEDULER), 0);
    const char* words[] = {"true", nullptr};
    pid_t child;
    CHECK_EQ(posix_spawnp(&child, "true", nullptr, &attributes, const_cast<char**>(words), environ), EINVAL);
    expect(spawn(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID, &attributes),
           "01ddd 1 1" + ids);
    // The thread is as it was.
    sigset_t mask;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &mask), 0);
    CHECK(sigismember(&mask, SIGUSR1) == 1 && sigismember(&mask, SIGUSR2) == 0);
    CHECK_EQ(std::to_string(sched_getscheduler(0)) == policy, true);
  }));
  crowd.end();
}
