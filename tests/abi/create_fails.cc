// abi: threads=1
// Out of address space pthread_create says EAGAIN; the threads that exist go on, and once there is room again it
// works again. A program started under a small limit runs.
#include <sys/resource.h>

#include "abi.h"

static size_t address_space() {
  FILE* file = fopen("/proc/self/statm", "r");
  CHECK(file != nullptr);
  size_t pages = 0;
  CHECK_EQ(fscanf(file, "%zu", &pages), 1);
  fclose(file);
  return pages * 4096;
}

static void* nothing(void*) { return nullptr; }

int main() {
  std::atomic<bool> stop{false};
  std::atomic<int64_t> work{0};
  const pthread_t existing = start([&] {
    while (!stop) {
      nap(kMs);
      ++work;
    }
  });
  rlimit old;
  CHECK_EQ(getrlimit(RLIMIT_AS, &old), 0);
  const rlimit tight = {address_space() + (256u << 20), old.rlim_max};
  pthread_attr_t huge;
  pthread_attr_init(&huge);
  CHECK_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 30), 0);
  CHECK_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, &huge, nothing, nullptr), EAGAIN);
  }
  const int64_t before = work;
  for (int i = 0; i < 200 && work == before; ++i) nap(20 * kMs);
  CHECK(work > before);
  CHECK_EQ(setrlimit(RLIMIT_AS, &old), 0);
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, &huge, nothing, nullptr), 0);
  join(thread);
  stop = true;
  join(existing);
}
