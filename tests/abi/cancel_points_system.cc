// abi: threads=5
// system(3) is a cancellation point: the command is killed and reaped, SIGINT, SIGQUIT and SIGCHLD are again as they
// were. A thread cancelled in waitpid leaves the spawned process to others. What posix_spawn, popen and fork do is done
// with a request pending.
#include <dirent.h>
#include <spawn.h>

#include "cancel.h"

extern char** environ;

static int ends[2];

// Processes whose parent we are.
static int children() {
  int n = 0;
  DIR* dir = opendir("/proc");
  CHECK(dir);
  while (const dirent* entry = readdir(dir)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    char path[300], text[512] = {};
    snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
    FILE* file = fopen(path, "r");
    if (!file) continue;
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    const char* name_end = length ? strrchr(text, ')') : nullptr;
    int parent = 0;
    char state;
    if (name_end && sscanf(name_end + 1, " %c %d", &state, &parent) == 2 && parent == getpid()) ++n;
  }
  closedir(dir);
  return n;
}

static pid_t spawn(const char* command) {
  const char* arguments[] = {"sh", "-c", command, nullptr};
  pid_t child = 0;
  CHECK_EQ(posix_spawn(&child, "/bin/sh", nullptr, nullptr, const_cast<char* const*>(arguments), environ), 0);
  return child;
}

static void handler(int) {}

int main() {
  CHECK_EQ(pipe(ends), 0);
  install(SIGINT, handler);
  install(SIGQUIT, SIG_DFL);
  const std::string command = "echo x >&" + std::to_string(ends[1]) + "; exec sleep 1000";
  Unwound seen;
  const Point blocked = {"system", [&] { system(command.c_str()); }};
  const pthread_t thread = start_point(blocked, &seen, false);
  char byte;
  CHECK_EQ(read(ends[0], &byte, 1), 1);
  CHECK_EQ(pthread_cancel(thread), 0);
  join_point(blocked, thread, seen, "arriving");
  CHECK_EQ(children(), 0);
  struct sigaction action;
  CHECK_EQ(sigaction(SIGINT, nullptr, &action), 0);
  CHECK(action.sa_handler == handler);
  CHECK_EQ(sigaction(SIGQUIT, nullptr, &action), 0);
  CHECK(action.sa_handler == SIG_DFL);
  sigset_t mask;
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &mask), 0);
  CHECK(!sigismember(&mask, SIGCHLD));
  CHECK_EQ(system("exit 5"), 5 << 8);

  static pid_t child;
  child = spawn("exec sleep 1000");
  cancel_blocked({{"waitpid for a spawned process", [] { waitpid(child, nullptr, 0); }}});
  CHECK_EQ(kill(child, SIGKILL), 0);
  CHECK_EQ(WTERMSIG(wait_status(child)), SIGKILL);

  not_cancelled({
      {"posix_spawn", [] { child = spawn("exit 3"); }},
      {"fork",
       [] {
         const pid_t forked = fork();
         if (forked == 0) _exit(4);
         int old;
         pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
         wait_exit(forked, 4);
         pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
       }},
  });
  wait_exit(child, 3);
  // A stream to a command: closed by somebody else if its reader is cancelled.
  static FILE* stream;
  stream = popen("exec sleep 1000", "r");
  CHECK(stream);
  cancel_blocked({{"read from a command", [] { read(fileno(stream), &ends, 1); }}});
  const int before = children();
  CHECK_EQ(before, 1);
}
