// abi: threads=3 stdout=main,rest,atexit,
// The main thread may be cancelled (pthread_cancel(3)): its handlers and destructors run, others go on and can join it,
// and the process ends with status 0, by way of exit, when the last of them has ended.
#include "abi.h"

static pthread_t main_thread;
static std::atomic<bool> waiting{false};

struct Note {
  const char* text;
  ~Note() { printf("%s,", text); }
};

int main() {
  atexit([] { printf("atexit,"); });
  main_thread = pthread_self();
  start([] {
    while (!waiting) sched_yield();
    settle();
    CHECK_EQ(pthread_cancel(main_thread), 0);
    void* result = nullptr;
    CHECK_EQ(pthread_join(main_thread, &result), 0);
    CHECK(result == PTHREAD_CANCELED);
    CHECK(join(start([] { nap(kMs); })) == nullptr);
    const pthread_t last = start([] {
      nap(2 * kMs);
      printf("rest,");
    });
    pthread_detach(last);
  });
  const Note note{"main"};
  waiting = true;
  for (;;) pause();
}
