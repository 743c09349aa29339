// abi: threads=1
// Who ends the process, and with what status (pthread_exit(3), exit(3)): the last thread's pthread_exit is exit(0); main's
// return, exit and _exit from any thread are immediate for all, whatever these do; output is flushed by the former.
#include "abi.h"

static int out[2];

// What the child wrote to standard output, and its wait status.
static std::string run(void (*body)(), int status) {
  CHECK_EQ(pipe(out), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], 1);
    close(out[0]);
    close(out[1]);
    atexit([] { printf("exit"); });
    body();
    pthread_exit(nullptr);
  }
  close(out[1]);
  std::string text;
  char block[256];
  for (ssize_t n; (n = read(out[0], block, sizeof block)) > 0;) text.append(block, static_cast<size_t>(n));
  close(out[0]);
  const int got = wait_status(child);
  if (!WIFEXITED(got) || WEXITSTATUS(got) != status) FAIL("wait status 0x%x, not exit code %d", got, status);
  return text;
}

static void expect(const char* text, int status, void (*body)()) {
  const std::string got = run(body, status);
  if (got != text) FAIL("wrote '%s', not '%s'", got.c_str(), text);
}

static void others() {
  for (int i = 0; i < 2; ++i) {
    pthread_detach(start([] { sleep(1000); }));
    pthread_detach(start([] {
      for (;;) asm volatile("");
    }));
  }
  sched_yield();
}

int main() {
  join(start([] {}));
  expect("exit", 0, [] { printf("%s", ""); });  // the only one
  expect("1exit", 0, [] {
    start([] {
      nap(kMs);
      printf("1");
      pthread_exit(reinterpret_cast<void*>(uintptr_t{5}));
    });
  });
  expect("2exit", 0, [] {
    const pthread_t sleeper = start([] {
      printf("2");
      sleep(1000);
    });
    start([sleeper] {
      settle();
      pthread_cancel(sleeper);
    });
  });
  expect("exit", 3, [] {
    others();
    exit(3);
  });
  expect("exit", 4, [] {
    others();
    start([] { exit(4); });
  });
  expect("", 5, [] {
    others();
    start([] {
      printf("lost");
      _exit(5);
    });
  });
  expect("", 6, [] {
    others();
    start([] { syscall(SYS_exit_group, 6); });
  });
  // A raw exit of one thread is no more than that.
  expect("exit", 7, [] {
    others();
    start([] { syscall(SYS_exit, 9); });
    start([] {
      settle();
      exit(7);
    });
  });
}
