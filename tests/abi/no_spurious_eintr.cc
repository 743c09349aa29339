// abi: threads=12
// Preemption is invisible: no call of the program ends with EINTR, none of its sleeps is short, no large pipe
// write is partial, no signal is pending or blocked that it does not know of.
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "abi.h"

static std::atomic<bool> stop{false};

static void sleeper() {
  while (!stop) {
    const int64_t begin = now_ns();
    const timespec time = to_timespec(3 * kMs);
    CHECK_EQ(nanosleep(&time, nullptr), 0);
    CHECK(now_ns() - begin >= 3 * kMs);
  }
}

static void poller() {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const int queue = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLIN;
  CHECK_EQ(epoll_ctl(queue, EPOLL_CTL_ADD, ends[0], &event), 0);
  while (!stop) {
    pollfd item = {ends[0], POLLIN, 0};
    CHECK_EQ(poll(&item, 1, 3), 0);
    CHECK_EQ(epoll_wait(queue, &event, 1, 3), 0);
    timeval time = {0, 3000};
    CHECK_EQ(select(0, nullptr, nullptr, nullptr, &time), 0);
    sigset_t pending;
    CHECK_EQ(sigpending(&pending), 0);
    CHECK(sigisemptyset(&pending) != 0);
  }
}

static void large_pipe(int id) {
  constexpr size_t kSize = 1 << 20;
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const pthread_t writer = start([&ends, id] {
    const std::vector<char> data(kSize, static_cast<char>('a' + id));
    for (int i = 0; i < 8; ++i) CHECK_EQ(write(ends[1], data.data(), kSize), kSize);
    close(ends[1]);
  });
  std::vector<char> data(64 * 1024);
  size_t total = 0;
  for (;;) {
    const ssize_t got = read(ends[0], data.data(), data.size());
    CHECK(got >= 0);
    if (got == 0) break;
    for (ssize_t i = 0; i < got; i += 1000) CHECK_EQ(data[static_cast<size_t>(i)], 'a' + id);
    total += static_cast<size_t>(got);
  }
  CHECK_EQ(total, 8 * kSize);
  join(writer);
}

int main() {
  std::vector<pthread_t> threads;
  for (int i = 0; i < 4; ++i)
    threads.push_back(start([] {
      while (!stop) burn(kMs);
    }));
  threads.push_back(start(sleeper));
  threads.push_back(start(sleeper));
  threads.push_back(start(poller));
  const pthread_t a = start([] { large_pipe(0); }), b = start([] { large_pipe(1); });
  sem_t never;
  sem_init(&never, 0, 0);
  const timespec deadline = after_ns(400 * kMs, CLOCK_REALTIME);
  CHECK_ERRNO(sem_timedwait(&never, &deadline), ETIMEDOUT);
  join(a);
  join(b);
  stop = true;
  join_all(threads);
  join(start([] {
    sigset_t now;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
    CHECK(sigisemptyset(&now) != 0);
  }));
}
