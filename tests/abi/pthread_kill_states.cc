// abi: threads=5
// pthread_kill runs the handler on its target, whatever that is doing: computing, in a condition wait, in
// nanosleep, in read, in a futex wait; and what it was doing goes on, or ends with EINTR.
#include "abi.h"

static std::atomic<pthread_t> handled_by{};
static std::atomic<int> handled{0};
static std::atomic<bool> on_own_stack{false};
static thread_local char* stack_mark = nullptr;

static void handler(int) {
  char here;
  const ptrdiff_t distance = stack_mark - &here;
  on_own_stack = distance > 0 && distance < 1 << 20;
  handled_by = pthread_self();
  ++handled;
}

static void hit(pthread_t target) {
  settle();
  const int before = handled;
  CHECK_EQ(pthread_kill(target, 0), 0);
  CHECK_EQ(pthread_kill(target, SIGUSR1), 0);
  for (int i = 0; handled == before && i < 5000; ++i) nap(kMs);
  CHECK_EQ(handled, before + 1);
  CHECK(pthread_equal(handled_by, target) != 0);
  CHECK(on_own_stack);
}

template <class F>
static pthread_t marked(F body) {
  return start([body] {
    char mark;
    stack_mark = &mark;
    body();
  });
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool ready = false;
static std::atomic<bool> stop{false};

int main() {
  install(SIGUSR1, handler);
  const pthread_t computing = marked([] {
    while (!stop) burn(kMs);
  });
  hit(computing);

  const pthread_t in_cond = marked([] {
    pthread_mutex_lock(&mutex);
    while (!ready) pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
  });
  hit(in_cond);
  hit(in_cond);
  pthread_mutex_lock(&mutex);
  ready = true;
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&mutex);
  join(in_cond);

  const pthread_t sleeping = marked([] {
    timespec left = {0, 0};
    const timespec long_time = {100, 0};
    CHECK_ERRNO(nanosleep(&long_time, &left), EINTR);
    CHECK(left.tv_sec >= 90 && left.tv_sec < 100);
  });
  hit(sleeping);
  join(sleeping);

  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const pthread_t reading = marked([&ends] {
    char byte;
    CHECK_ERRNO(read(ends[0], &byte, 1), EINTR);
  });
  hit(reading);
  join(reading);

  static uint32_t word = 0;
  const pthread_t in_futex = marked([] { CHECK_ERRNO(futex(&word, FUTEX_WAIT_PRIVATE, 0), EINTR); });
  hit(in_futex);
  join(in_futex);
  CHECK_EQ(futex(&word, FUTEX_WAKE_PRIVATE, 1), 0);
  stop = true;
  join(computing);
}
