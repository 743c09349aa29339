// abi: threads=50000 reused=1000 timeout=120
// Many short threads of every kind mixed at random: results are right, thread-local data is new, destructors run,
// masks are the creator's. The seed is printed on failure.
#include <semaphore.h>

#include <random>
#include <thread>

#include "abi.h"

static pthread_key_t key;
static std::atomic<int> key_calls{0}, expected_calls{0}, detached{0};
static __thread int mark = 1;
static sem_t gate;

struct Job {
  unsigned kind;
  void* token;
};

static void* body(void* argument) {
  Job job = *static_cast<Job*>(argument);
  delete static_cast<Job*>(argument);
  CHECK_EQ(mark, 1);
  CHECK_EQ(errno, 0);
  CHECK(pthread_getspecific(key) == nullptr);
  sigset_t set;
  pthread_sigmask(SIG_BLOCK, nullptr, &set);
  CHECK(!sigismember(&set, SIGUSR1));
  mark = 2;
  errno = 5;
  switch (job.kind) {
    case 0:
      ++expected_calls;
      pthread_setspecific(key, &key);
      break;
    case 1:
      pthread_exit(job.token);
    case 2: {
      const sigset_t usr1 = signal_set({SIGUSR1});
      pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
      break;
    }
    case 3:
      sched_yield();
      break;
    case 4:
      for (;;) nap(kSecond);  // to be cancelled
    case 5: {
      int old;
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
      CHECK_EQ(old, PTHREAD_CANCEL_ENABLE);
      break;
    }
    case 6:
      pthread_detach(pthread_self());
      ++detached;
      sem_post(&gate);
      break;
    case 7:
      std::thread([] { CHECK_EQ(mark, 1); }).join();
      break;
    default:
      break;
  }
  return job.token;
}

static void run(unsigned seed, int rounds) {
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    struct Made {
      pthread_t id;
      unsigned kind;
      void* token;
    } made[12];
    const unsigned count = 1 + random() % 12;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned kind = random() % 24;
      void* token = reinterpret_cast<void*>(uintptr_t{random()} + 1);
      made[i] = {0, kind, token};
      const int error = pthread_create(&made[i].id, nullptr, body, new Job{kind, token});
      if (error != 0) FAIL("seed %u: pthread_create %d", seed, error);
      if (random() % 16 == 0) sched_yield();
    }
    for (unsigned i = 0; i < count; ++i) {
      Made& m = made[i];
      if (m.kind == 6) continue;
      if (m.kind == 4 || m.kind >= 22) pthread_cancel(m.id);
      if (m.kind == 8) {
        pthread_detach(m.id);
        continue;
      }
      if (m.kind == 9) pthread_kill(m.id, 0);
      void* result = nullptr;
      int error = EBUSY;
      if (m.kind == 10)
        while ((error = pthread_tryjoin_np(m.id, &result)) == EBUSY) sched_yield();
      else if (m.kind == 11) {
        timespec at;
        do {
          at = after_ns(kMs / 10, CLOCK_REALTIME);
          error = pthread_timedjoin_np(m.id, &result, &at);
        } while (error == ETIMEDOUT);
      } else {
        error = pthread_join(m.id, &result);
      }
      if (error != 0) FAIL("seed %u: join of kind %u: %d", seed, m.kind, error);
      const bool may_be_cancelled = m.kind == 4 || m.kind >= 22;
      if (result != m.token && !(may_be_cancelled && result == PTHREAD_CANCELED))
        FAIL("seed %u: kind %u returned %p, not %p", seed, m.kind, result, m.token);
    }
  }
}

int main(int count, char** arguments) {
  const unsigned seed =
      count > 1 ? static_cast<unsigned>(atoi(arguments[1])) : static_cast<unsigned>(now_ns());
  CHECK_EQ(sem_init(&gate, 0, 0), 0);
  CHECK_EQ(pthread_key_create(&key, [](void*) { ++key_calls; }), 0);
  const int rounds = 1900;
  std::vector<std::thread> creators;
  for (unsigned i = 0; i < 4; ++i) creators.emplace_back([seed, i] { run(seed + i, rounds); });
  run(seed + 4, rounds);
  for (std::thread& creator : creators) creator.join();
  while (detached > 0) {
    CHECK_EQ(sem_wait(&gate), 0);
    --detached;
  }
  CHECK_EQ(key_calls, expected_calls);
}
