// Programs that ask for --events bpf.
#pragma once

#include <dirent.h>

#include "unseen.h"

namespace upcall::test {

// Where the scheduler's events of this process arrive; null: they are not read.
inline uint32_t* events_table() {
  FILE* maps = fopen("/proc/self/maps", "r");
  CHECK(maps != nullptr);
  char line[512];
  unsigned long begin = 0;
  while (fgets(line, sizeof line, maps) != nullptr)
    if (strstr(line, "bpf-map") != nullptr) CHECK_EQ(sscanf(line, "%lx-", &begin), 1);
  fclose(maps);
  return reinterpret_cast<uint32_t*>(begin);
}

// The first thread starts the runtime.
inline void need_events() {
  join(start([] {}));
  if (events_table() == nullptr) skip("BPF is not allowed here, or not built");
}

// One thread blocks, where nobody is told, in calls that the other answers: with one processor a hang unless it is noticed.
inline void block_unseen(int rounds) {
  auto call = made_syscall();
  int there[2], back[2];
  CHECK_EQ(pipe(there), 0);
  CHECK_EQ(pipe(back), 0);
  const pthread_t other = start([&] {
    for (int i = 0; i < rounds; ++i) {
      char c = 0;
      CHECK_EQ(call(SYS_read, there[0], reinterpret_cast<long>(&c), 1), 1);
      CHECK_EQ(call(SYS_write, back[1], reinterpret_cast<long>(&c), 1), 1);
    }
  });
  for (int i = 0; i < rounds; ++i) {
    char c = static_cast<char>(i);
    CHECK_EQ(write(there[1], &c, 1), 1);
    c = 99;
    CHECK_EQ(call(SYS_read, back[0], reinterpret_cast<long>(&c), 1), 1);
    CHECK_EQ(c, static_cast<char>(i));
  }
  join(other);
  for (const int fd : {there[0], there[1], back[0], back[1]}) CHECK_EQ(close(fd), 0);
}

inline int bpf_descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  CHECK(folder != nullptr);
  int found = 0;
  while (const dirent* entry = readdir(folder)) {
    char target[256] = {};
    if (readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1) > 0)
      found += strstr(target, "bpf") != nullptr;
  }
  closedir(folder);
  return found;
}

}  // namespace upcall::test
