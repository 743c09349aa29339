// abi: threads=1
// signal(7), sigprocmask(2): a fault whose signal is at its default, blocked in that thread or ignored kills the process
// by that signal, also where a handler is installed: in the main thread, in another one, inside a handler; int3 and a
// trap flag as well, whose instruction is over when the signal comes.
#include <sys/mman.h>
#include <sys/resource.h>

#include "abi.h"

static volatile int zero = 0;

static void cause(int signal) {
  if (signal == SIGSEGV) *reinterpret_cast<volatile char*>(uintptr_t{8} + static_cast<uintptr_t>(zero)) = 1;
  if (signal == SIGFPE) {
    volatile int result = 7 / zero;
    (void)result;
  }
  if (signal == SIGILL) asm volatile("ud2");
  if (signal == SIGTRAP) asm volatile("int3");
  if (signal == SIGBUS) {
    FILE* file = tmpfile();
    auto* mapped =
        static_cast<volatile char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0));
    mapped[4096] = 1;
  }
  // The trap flag: the next instruction is the last.
  if (signal == -SIGTRAP)
    asm volatile(
        "lea -256(%%rsp), %%rsp\n\tpushfq\n\torl $0x100, (%%rsp)\n\tpopfq\n\tnop\n\tnop\n\tlea 256(%%rsp), "
        "%%rsp" ::
            : "memory", "cc");
  _exit(3);
}

enum class How { standard, blocked, ignored, in_handler };

static void child(int signal, How how, bool in_main) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const int number = abs(signal);
  const auto run = [=] {
    const sigset_t set = signal_set({number});
    if (how == How::blocked) {
      install(number, [](int) { _exit(4); });
      pthread_sigmask(SIG_BLOCK, &set, nullptr);
    }
    if (how == How::ignored) install(number, SIG_IGN);
    static int wanted;
    wanted = signal;
    if (how == How::in_handler) {
      install(number, [](int) { cause(wanted); });
      raise(number);
    }
    cause(signal);
  };
  const pthread_t other = start([&] {
    if (!in_main) run();
    for (;;) pause();
  });
  if (in_main) run();
  join(other);
}

int main() {
  start([] {
    for (;;) pause();
  });
  for (int signal : {SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGBUS, -SIGTRAP})
    for (How how : {How::standard, How::blocked, How::ignored, How::in_handler})
      for (bool in_main : {false, true}) {
        if (in_main && how != How::standard) continue;
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) child(signal, how, in_main);
        const int status = wait_status(pid);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != abs(signal))
          FAIL("signal %d, how %d, main %d: status 0x%x", signal, static_cast<int>(how), in_main, status);
      }
}
