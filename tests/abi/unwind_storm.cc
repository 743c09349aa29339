// abi: threads=300
// Hundreds of cancelled threads, holding objects whose destructors give locks, memory and counts back: in waits on
// std::condition_variable, in reads, asleep, waiting for semaphores, and computing between cancellation points, each in
// nested frames of the program and of a shared library. Afterwards nothing is held and nothing is left.
#include <dlfcn.h>
#include <semaphore.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "abi.h"

// Before it the wait was noexcept, and a cancellation there ended the process.
#if _GLIBCXX_RELEASE >= 12
static constexpr bool kMayWait = true;
#else
static constexpr bool kMayWait = false;
#endif

static std::atomic<int> objects{0}, entered{0};
static std::mutex mutex;
static std::condition_variable cond;
static bool go = false;
static sem_t sem;
static int ends[2];
static void (*library_call)(int, void (*)(void*), void*);

struct Counted {
  std::unique_ptr<char[]> memory{new char[100]};
  std::string text{"a string that is too long to be kept in its own object"};
  Counted() { ++objects; }
  ~Counted() { --objects; }
};

static void wait_in(uintptr_t how) {
  const Counted counted;
  ++entered;
  char byte;
  switch (how) {
    case 0: {
      std::unique_lock<std::mutex> lock(mutex);
      if (kMayWait)
        cond.wait(lock, [] { return go; });
      else
        lock.unlock(), sleep(1000);
      break;
    }
    case 1:
      read(ends[0], &byte, 1);
      break;
    case 2:
      std::this_thread::sleep_for(std::chrono::hours(1));
      break;
    case 3:
      sem_wait(&sem);
      break;
    case 4:
      for (;;) {
        burn(20'000);
        pthread_testcancel();
      }
  }
  FAIL("not cancelled in %d", static_cast<int>(how));
}

static void nested(int depth, uintptr_t how) {
  const Counted counted;
  if (depth > 0) {
    const std::shared_ptr<Counted> shared = std::make_shared<Counted>();
    nested(depth - 1, how);
    return;
  }
  library_call(
      5, [](void* argument) { wait_in(reinterpret_cast<uintptr_t>(argument)); },
      reinterpret_cast<void*>(how));
}

int main() {
  void* library = dlopen((executable_directory() + "/unwind_library.so").c_str(), RTLD_NOW);
  if (!library) FAIL("%s", dlerror());
  library_call =
      reinterpret_cast<void (*)(int, void (*)(void*), void*)>(dlsym(library, "unwind_library_call"));
  auto* left = static_cast<std::atomic<int>*>(dlsym(library, "unwind_library_left"));
  auto* caught = static_cast<std::atomic<int>*>(dlsym(library, "unwind_library_caught"));
  CHECK(library_call && left && caught);
  CHECK_EQ(sem_init(&sem, 0, 0), 0);
  CHECK_EQ(pipe(ends), 0);
  for (int round = 0; round < 3; ++round) {
    std::vector<pthread_t> threads;
    entered = 0;
    for (uintptr_t i = 0; i < 100; ++i)
      threads.push_back(start([i] { nested(3 + static_cast<int>(i % 7), i % 25 == 4 ? 4 : i % 4); }));
    if (round != 1)
      while (entered < 100) nap(kMs / 4);
    for (pthread_t thread : threads) CHECK_EQ(pthread_cancel(thread), 0);
    for (pthread_t thread : threads) CHECK(join(thread) == PTHREAD_CANCELED);
    CHECK_EQ(objects, 0);
    CHECK_EQ(*left, 600 * (round + 1));
    CHECK_EQ(*caught, 500 * (round + 1));
    CHECK(mutex.try_lock());
    mutex.unlock();
  }
  // All of these can still be used by those who come after.
  std::thread waiter([] {
    std::unique_lock<std::mutex> lock(mutex);
    cond.wait(lock, [] { return go; });
    CHECK_EQ(sem_wait(&sem), 0);
    char byte;
    CHECK_EQ(read(ends[0], &byte, 1), 1);
  });
  {
    const std::lock_guard<std::mutex> lock(mutex);
    go = true;
  }
  cond.notify_one();
  sem_post(&sem);
  CHECK_EQ(write(ends[1], "x", 1), 1);
  waiter.join();
}
