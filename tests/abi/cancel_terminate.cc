// abi: threads=1
// What C++ does not let a cancellation pass: a noexcept function (std::terminate), a catch (...) that does not rethrow
// (glibc: "exception not rethrown"); both end the process by SIGABRT. A destructor's own exception that is caught inside
// it disturbs nothing. The same for pthread_exit.
#include <cxxabi.h>
#include <sys/resource.h>

#include "abi.h"

static void waits() { sleep(1000); }
static void exits() { pthread_exit(nullptr); }
static void no_way(void (*end)()) noexcept { end(); }

static void (*end_by)();

static void expect_end(void (*body)(), int signal, int status) {
  for (void (*end)() : {waits, exits}) {
    end_by = end;
    const pid_t child = fork();
    if (child == 0) {
      close(2);
      const rlimit no_core = {0, 0};
      setrlimit(RLIMIT_CORE, &no_core);
      static std::atomic<bool> entered{false};
      const pthread_t thread = start([body] {
        entered = true;
        body();
      });
      while (!entered) sched_yield();
      if (end == waits) CHECK_EQ(pthread_cancel(thread), 0);
      void* result = nullptr;
      pthread_join(thread, &result);
      _exit(result == (end == waits ? PTHREAD_CANCELED : nullptr) ? 3 : 4);
    }
    const int got = wait_status(child);
    if (signal ? !WIFSIGNALED(got) || WTERMSIG(got) != signal : !WIFEXITED(got) || WEXITSTATUS(got) != status)
      FAIL("wait status 0x%x", got);
  }
}

struct Throws {
  ~Throws() {
    try {
      throw 1;
    } catch (int) {
    }
  }
};

int main() {
  join(start([] {}));
  expect_end([] { no_way(end_by); }, SIGABRT, 0);
  expect_end(
      [] {
        try {
          end_by();
        } catch (...) {
        }
      },
      SIGABRT, 0);
  expect_end(
      [] {
        const Throws quietly;
        try {
          end_by();
        } catch (const abi::__forced_unwind&) {
          throw;
        }
      },
      0, 3);
  expect_end(
      [] {
        try {
          end_by();
        } catch (const std::exception&) {  // is none
          _exit(5);
        } catch (int) {
          _exit(6);
        }
      },
      0, 3);
}
