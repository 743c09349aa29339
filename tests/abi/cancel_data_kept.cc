// abi: threads=80
// A read that has got data, and a semaphore that has been taken, are not undone by a request that arrives at that moment:
// what was sent is what threads got before they were cancelled, and what is left. (glibc before 2.41 may lose what a read
// got: it knew a call that had returned not from one that waited.)
#include <fcntl.h>
#include <semaphore.h>

#include "abi.h"

static int ends[2];
static sem_t sem;
static std::atomic<int> bytes_got{0}, tokens_got{0};

int main() {
  CHECK_EQ(pipe(ends), 0);
  CHECK_EQ(fcntl(ends[0], F_SETFL, 0), 0);
  CHECK_EQ(sem_init(&sem, 0, 0), 0);
  int sent = 0;
  for (int round = 0; round < 40; ++round) {
    std::atomic<int> begun{0};
    const pthread_t reader = start([&begun] {
      char byte;
      ++begun;
      for (;;)
        if (read(ends[0], &byte, 1) == 1) ++bytes_got;
    });
    const pthread_t taker = start([&begun] {
      ++begun;
      for (;;)
        if (sem_wait(&sem) == 0) ++tokens_got;
    });
    while (begun < 2) sched_yield();
    for (int i = 0; i < 5; ++i) {
      CHECK_EQ(write(ends[1], "x", 1), 1);
      CHECK_EQ(sem_post(&sem), 0);
      ++sent;
      burn(round % 8 * 2000);
    }
    CHECK_EQ(pthread_cancel(taker), 0);
    CHECK_EQ(pthread_cancel(reader), 0);
    CHECK(join(taker) == PTHREAD_CANCELED);
    CHECK(join(reader) == PTHREAD_CANCELED);
  }
  CHECK_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  char rest[4096];
  ssize_t left = read(ends[0], rest, sizeof rest);
  if (left < 0) left = 0;
  CHECK(bytes_got + left <= sent);
  if (libc_minor() >= 41) CHECK_EQ(bytes_got + left, sent);
  int tokens = 0;
  CHECK_EQ(sem_getvalue(&sem, &tokens), 0);
  CHECK_EQ(tokens_got + tokens, sent);
}
