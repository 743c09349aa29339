// abi: threads=9
// execve(2) that fails (ENOENT, EACCES, ENOTDIR, ENOEXEC, E2BIG, ETXTBSY, ELOOP, EFAULT, ENAMETOOLONG) changes nothing: threads go
// on, handlers run, masks, pending signals, timers, descriptors and the affinity mask are as they were; from main and others.
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include "process.h"

namespace {

std::atomic<int> handled{0}, rang{0};
char folder[] = "/tmp/abi_refused_XXXXXX";
std::string damaged, plain, running, circle;

int create(const std::string& path, const char* text, mode_t mode) {
  const int file = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0700);
  CHECK(file >= 0);
  CHECK_EQ(write(file, text, strlen(text)), static_cast<ssize_t>(strlen(text)));
  CHECK_EQ(fchmod(file, mode), 0);
  return file;
}

void fail_in_every_way() {
  char* const words[] = {const_cast<char*>("x"), nullptr};
  CHECK_ERRNO(execv("/nonexistent/x", words), ENOENT);
  CHECK_ERRNO(execv("/etc/passwd/x", words), ENOTDIR);
  CHECK_ERRNO(execv("/tmp", words), EACCES);
  CHECK_ERRNO(execv(plain.c_str(), words), EACCES);
  CHECK_ERRNO(execv(damaged.c_str(), words), ENOEXEC);
  CHECK_ERRNO(execv(running.c_str(), words), ETXTBSY);
  CHECK_ERRNO(execv(circle.c_str(), words), ELOOP);
  CHECK_ERRNO(execv(std::string(5000, 'x').c_str(), words), ENAMETOOLONG);
  CHECK_ERRNO(syscall(SYS_execve, 8, words, nullptr), EFAULT);
  static std::string large(200'000, 'x');  // one argument may have 128 KiB
  char* const many[] = {const_cast<char*>("x"), large.data(), nullptr};
  CHECK_ERRNO(execv("/bin/true", many), E2BIG);
  CHECK_ERRNO(execvp("no-such-program-at-all", words), ENOENT);
}

void check_after(const cpu_set_t& mask) {
  cpu_set_t now;
  CPU_ZERO(&now);
  CHECK_EQ(sched_getaffinity(0, sizeof now, &now), 0);
  CHECK(CPU_EQUAL(&mask, &now));
  const int before = handled, rung = rang;
  raise(SIGUSR1);
  CHECK_EQ(handled.load(), before + 1);
  sigset_t pending, blocked;
  CHECK_EQ(sigpending(&pending), 0);
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &blocked), 0);
  CHECK(sigismember(&pending, SIGUSR2) == 1 && sigismember(&blocked, SIGUSR2) == 1);
  CHECK(sigismember(&pending, SIGTERM) == 0 && sigismember(&blocked, SIGTERM) == 0);
  while (rang == rung) nap(kMs / 2);
  use_threads();
}

}  // namespace

int main() {
  CHECK(mkdtemp(folder) != nullptr);
  const std::string inside = std::string(folder) + "/";
  close(create(damaged = inside + "damaged", "\177ELF and nothing else", 0755));
  close(create(plain = inside + "plain", "#!/bin/sh\n", 0644));
  const int open_for_writing = create(running = inside + "running", "#!/bin/sh\n", 0755);
  CHECK_EQ(symlink("circle", (circle = inside + "circle").c_str()), 0);
  Crowd crowd;
  install(SIGUSR1, [](int) { ++handled; });
  install(
      SIGALRM, [](int) { ++rang; }, SA_RESTART);
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CHECK_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  timer_t timer;
  CHECK_EQ(timer_create(CLOCK_MONOTONIC, nullptr, &timer), 0);  // SIGALRM
  const itimerspec every = {to_timespec(kMs), to_timespec(kMs)};
  CHECK_EQ(timer_settime(timer, 0, &every, nullptr), 0);
  const auto in_thread = [&] {
    const sigset_t blocked = signal_set({SIGUSR2});
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &blocked, nullptr), 0);
    raise(SIGUSR2);
    for (int round = 0; round < 2; ++round) {
      fail_in_every_way();
      check_after(mask);
    }
    const sigset_t one = signal_set({SIGUSR2});
    int signal = 0;
    CHECK_EQ(sigwait(&one, &signal), 0);
    CHECK_EQ(signal, SIGUSR2);
    sigset_t pending;
    CHECK_EQ(sigpending(&pending), 0);
    CHECK_EQ(sigismember(&pending, SIGUSR2), 0);  // once
  };
  join(start(in_thread));
  in_thread();
  CHECK_EQ(timer_delete(timer), 0);
  crowd.end();
  close(open_for_writing);
  for (const auto& path : {damaged, plain, running, circle}) unlink(path.c_str());
  rmdir(folder);
}
