// abi: threads=6
// How a process with threads ends: exit, _exit, quick_exit, a return from main, abort, from main, a thread, a handler, while others
// compute, wait and are blocked: its status (wait(2)), which functions of atexit, on_exit and at_quick_exit run, once, in the
// thread that ends it, and whether streams are flushed (exit(3), quick_exit(3), abort(3)).
#include <sys/mman.h>

#include "process.h"

namespace {

struct Seen {
  std::atomic<int> exits, quick_exits, wrong_thread, status;
};
Seen* seen;
pthread_t ending;
int ends[2];

template <class F>
void in_process(int status, int exits, int quick_exits, const char* written, F end) {
  seen->exits = seen->quick_exits = seen->wrong_thread = 0;
  seen->status = -1;
  CHECK_EQ(pipe(ends), 0);
  const pid_t child = start_child([&] {
    FILE* stream = fdopen(ends[1], "w");
    fputs("text", stream);
    atexit([] {
      ++seen->exits;
      if (!pthread_equal(pthread_self(), ending)) ++seen->wrong_thread;
    });
    on_exit([](int code, void*) { seen->status = code; }, nullptr);
    at_quick_exit([] { ++seen->quick_exits; });
    new Crowd;
    end();
    for (;;) pause();
  });
  close(ends[1]);
  char text[8] = {};
  for (ssize_t n, at = 0; (n = read(ends[0], text + at, sizeof text - 1 - static_cast<size_t>(at))) > 0;)
    at += n;
  close(ends[0]);
  const int got = wait_status(child);
  if (got != status) FAIL("status 0x%x, not 0x%x", got, status);
  CHECK_EQ(seen->exits.load(), exits);
  CHECK_EQ(seen->quick_exits.load(), quick_exits);
  CHECK_EQ(seen->wrong_thread.load(), 0);
  if (exits) CHECK_EQ(seen->status.load() & 0xff, WEXITSTATUS(status));
  if (strcmp(text, written) != 0) FAIL("written: '%s', not '%s'", text, written);
}

template <class F>
void from_everywhere(int status, int exits, int quick_exits, const char* written, F end) {
  static F* what;
  what = &end;
  in_process(status, exits, quick_exits, written, [] {
    ending = pthread_self();
    (*what)();
  });
  in_process(status, exits, quick_exits, written, [] {
    start([] {
      ending = pthread_self();
      (*what)();
    });
  });
  in_process(status, exits, quick_exits, written, [] {
    install(SIGUSR1, [](int) {
      ending = pthread_self();
      (*what)();
    });
    const pthread_t asleep = start([] { nap(1000 * kSecond); });
    pthread_kill(asleep, SIGUSR1);
  });
}

}  // namespace

int main() {
  seen = static_cast<Seen*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(seen != MAP_FAILED);
  Crowd crowd;
  crowd.end();
  from_everywhere(17 << 8, 1, 0, "text", [] { exit(17 + 256); });
  from_everywhere(18 << 8, 0, 0, "", [] { _exit(18); });
  from_everywhere(19 << 8, 0, 1, "", [] { quick_exit(19); });
  from_everywhere(SIGABRT, 0, 0, "", [] {
    signal(SIGABRT, SIG_DFL);
    abort();
  });
}
