// Tests of the engine change code that the test itself runs on: each does it in a child process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

extern "C" {
void patch_test_entry();
void patch_test_set_gs(unsigned long base);
extern unsigned long patch_test_calls, patch_test_last;
}

// Runs `body` in a forked child; its return value, or 1000 + signal, or -1.
template <typename Body>
int in_child(Body body) {
  std::fflush(nullptr);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(30);
    int result = body();
    std::fflush(nullptr);
    _exit(result);
  }
  int status;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
