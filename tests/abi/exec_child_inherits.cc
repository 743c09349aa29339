// abi: threads=5
// What a forked or spawned child hands to exec is what a plain program would: affinity mask, signal mask, nice
// value, limits, no stray open files.
#include <dirent.h>
#include <sched.h>
#include <spawn.h>
#include <sys/resource.h>

#include "abi.h"

extern char** environ;

static std::string describe() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::string text = std::to_string(CPU_COUNT(&set)) + ";";
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) text += std::to_string(i) + ",";
  sigset_t mask;
  CHECK_EQ(sigprocmask(SIG_SETMASK, nullptr, &mask), 0);
  for (int signal = 1; signal <= SIGRTMAX; ++signal)
    if (sigismember(&mask, signal) == 1) text += ";" + std::to_string(signal);
  text += " nice " + std::to_string(getpriority(PRIO_PROCESS, 0));
  text += " policy " + std::to_string(sched_getscheduler(0));
  rlimit limit;
  for (int kind : {RLIMIT_STACK, RLIMIT_MEMLOCK, RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_AS, RLIMIT_SIGPENDING}) {
    CHECK_EQ(getrlimit(static_cast<__rlimit_resource>(kind), &limit), 0);
    text += " " + std::to_string(limit.rlim_cur) + "/" + std::to_string(limit.rlim_max);
  }
  return text;
}

static void check_child(char** arguments) {
  const std::string now = describe();
  if (now != arguments[2]) FAIL("the child has '%s', the parent had '%s'", now.c_str(), arguments[2]);
  const int most = atoi(arguments[3]);
  DIR* directory = opendir("/proc/self/fd");
  CHECK(directory != nullptr);
  int files = 0;
  while (const dirent* entry = readdir(directory)) files += entry->d_name[0] != '.';
  closedir(directory);
  if (files > most) FAIL("%d open files instead of at most %d", files, most);
}

static int open_inheritable() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    const int flags = static_cast<int>(syscall(SYS_fcntl, fd, 1 /* F_GETFD */));
    count += flags >= 0 && (flags & 1) == 0;
  }
  return count;
}

int main(int count, char** arguments) {
  if (count > 1) {
    check_child(arguments);
    return 0;
  }
  const sigset_t mask = signal_set({SIGUSR2, SIGTERM});
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, &mask, nullptr), 0);
  const std::string me = describe(), self = executable_directory() + "/exec_child_inherits";
  const std::string most = std::to_string(open_inheritable() + 1);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 5; ++i)
    threads.push_back(start([&, i] {
      for (int round = 0; round < 3; ++round) {
        const char* words[] = {self.c_str(), "again", me.c_str(), most.c_str(), nullptr};
        pid_t child = 0;
        if (i == 0) {
          child = vfork();
          if (child == 0) {
            execv(self.c_str(), const_cast<char**>(words));
            _exit(98);
          }
        } else if (i % 2 == 0) {
          child = fork();
          if (child == 0) {
            execv(self.c_str(), const_cast<char**>(words));
            _exit(98);
          }
        } else {
          CHECK_EQ(posix_spawn(&child, self.c_str(), nullptr, nullptr, const_cast<char**>(words), environ),
                   0);
        }
        CHECK(child > 0);
        wait_exit(child, 0);
      }
    }));
  join_all(threads);
}
