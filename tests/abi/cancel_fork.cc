// abi: threads=2
// fork's child has the cancellation state of the thread that forked (fork(2) copies it): a pending request acts there,
// disabled stays disabled. Its only thread being cancelled, or exiting, the child ends with status 0. New threads in the
// child can be cancelled.
#include "abi.h"

static void in_child(void (*body)(), int status) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(9);
  }
  wait_exit(child, status);
}

int main() {
  const pthread_t thread = start([] {
    int old;
    CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr), 0);
    CHECK_EQ(pthread_cancel(pthread_self()), 0);
    in_child(
        [] {
          pthread_testcancel();
          usleep(1);
          _exit(3);  // disabled here as well
        },
        3);
    in_child(
        [] {
          pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
          usleep(1);
        },
        0);
    in_child([] { pthread_exit(nullptr); }, 0);
    CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old), 0);
    pthread_testcancel();
    FAIL("the request is gone");
  });
  CHECK(join(thread) == PTHREAD_CANCELED);
  // Threads of the child; the parent's are not there.
  in_child(
      [] {
        const pthread_t sleeper = start([] { sleep(1000); });
        CHECK_EQ(pthread_cancel(sleeper), 0);
        CHECK(join(sleeper) == PTHREAD_CANCELED);
        CHECK_EQ(pthread_cancel(pthread_self()), 0);
        pthread_testcancel();
      },
      0);
  const pthread_t forks = start([] {
    in_child(
        [] {
          static const pthread_t self = pthread_self();
          start([] {
            nap(2 * kMs);
            CHECK_EQ(pthread_cancel(self), 0);
            void* result;
            CHECK_EQ(pthread_join(self, &result), 0);
            _exit(result == PTHREAD_CANCELED ? 5 : 6);
          });
          sleep(1000);
        },
        5);
  });
  CHECK(join(forks) == nullptr);
}
