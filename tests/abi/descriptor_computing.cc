// abi: threads=4 descriptors=events counters=event_waits:30
// Threads compute on all processors; one that waits for a descriptor is there within a few milliseconds all the same, and one
// flooded descriptor starves no other.
#include "descriptor.h"

int main() {
  std::atomic<bool> over{false};
  std::vector<pthread_t> computing;
  for (int i = 0; i < 2; ++i)
    computing.push_back(start([&] {
      while (!over) burn(kMs);
    }));
  const Pair there = unix_pair(), back = unix_pair(), flood = unix_pair();
  const pthread_t answers = start([&] {
    for (int i = 0; i < 60; ++i) put(back.b, get(there.a));
  });
  const pthread_t flooded = start([&] {
    char text[256];
    // To the last: whoever writes may be waiting for room.
    ssize_t n;
    do CHECK((n = read(flood.a, text, sizeof text)) > 0);
    while (text[n - 1] != 'e');
  });
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    CHECK_EQ(fcntl(flood.b, F_SETFL, O_NONBLOCK), 0);
    std::vector<int64_t> took;
    char text[256] = {};
    for (int i = 0; i < 60; ++i) {
      for (int64_t end = now_ns() + 2 * kMs; now_ns() < end;) {
        const ssize_t written = write(flood.b, text, sizeof text);
        CHECK(written > 0 || errno == EAGAIN);
      }
      const int64_t begun = now_ns();
      put(there.b, 'x');
      CHECK_EQ(get(back.a), 'x');
      took.push_back(now_ns() - begun);
    }
    size_t late = 0;
    for (const int64_t ns : took) late += ns > 60 * kMs * time_factor();
    if (late > 6) FAIL("%zu of 60 answers took more than 60 ms", late);
    CHECK_EQ(fcntl(flood.b, F_SETFL, 0), 0);
    _exit(0);
  }
  int status;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  over = true;
  put(flood.b, 'e');
  join(answers);
  join(flooded);
  join_all(computing);
}
