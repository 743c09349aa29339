// abi: threads=20 descriptors=events counters=event_waits:12
// poll of several descriptors: each answers, whoever waits beside it; time-outs, signals, other threads' waits for the same
// descriptors, and descriptors that come and go.
#include "descriptor.h"

namespace {

constexpr int kPairs = 8;
Pair g_pairs[kPairs];

pollfd asks(int fd, short events = POLLIN) { return {fd, events, 0}; }

// Whoever polls all gets each message once; the order in which they were sent does not matter.
void each_answers() {
  for (Pair& p : g_pairs) p = &p - g_pairs < kPairs / 2 ? unix_pair() : pipe_pair();
  const pthread_t sends = start([] {
    for (int round = 0; round < 20; ++round)
      for (int i = 0; i < kPairs; ++i) {
        put(g_pairs[(i * 3 + round) % kPairs].b, static_cast<char>('a' + i));
        if (i % 3 == 0) nap(kMs / 10);
      }
  });
  int seen[kPairs] = {};
  for (int left = 20 * kPairs; left;) {
    pollfd all[kPairs + 1];
    for (int i = 0; i < kPairs; ++i) all[i] = asks(g_pairs[i].a);
    all[kPairs] = asks(-1);
    const int ready = poll(all, kPairs + 1, -1);
    CHECK(ready > 0);
    int found = 0;
    for (int i = 0; i < kPairs; ++i) {
      if (!all[i].revents) continue;
      CHECK_EQ(all[i].revents, POLLIN);
      ++found;
      get(g_pairs[i].a);
      ++seen[i];
      --left;
    }
    CHECK_EQ(found, ready);
    CHECK_EQ(all[kPairs].revents, 0);
  }
  join(sends);
  for (const int n : seen) CHECK_EQ(n, 20);
}

void time_outs() {
  pollfd all[2] = {asks(g_pairs[0].a), asks(g_pairs[1].a)};
  all[0].revents = all[1].revents = 77;
  const int64_t begun = now_ns();
  CHECK_EQ(poll(all, 2, 30), 0);
  CHECK(now_ns() - begun >= 30 * kMs);
  CHECK_EQ(all[0].revents | all[1].revents, 0);
  CHECK_EQ(poll(all, 2, 0), 0);
  // An end that comes instead.
  const Pair closing = unix_pair();
  pollfd ends[3] = {asks(g_pairs[0].a), asks(closing.a), asks(closing.a, POLLIN | POLLOUT)};
  const pthread_t closes = start([&] {
    settle();
    close(closing.b);
  });
  ends[2].fd = g_pairs[1].a, ends[2].events = 0;
  CHECK_EQ(poll(ends, 3, -1), 1);
  CHECK_EQ(ends[1].revents, POLLIN | POLLHUP);
  join(closes);
  close(closing.a);
  ends[1].fd = closing.a;  // no such descriptor
  CHECK_EQ(poll(ends, 3, -1), 1);
  CHECK_EQ(ends[1].revents, POLLNVAL);
}

// Many threads poll the same descriptors, beside one that reads; a byte ends each.
void together() {
  constexpr int threads = 12;
  std::vector<pthread_t> polling;
  std::atomic<int> woken{0};
  for (int i = 0; i < threads; ++i)
    polling.push_back(start([&, i] {
      pollfd all[3] = {asks(g_pairs[i % kPairs].a), asks(g_pairs[0].a), asks(g_pairs[1].b, POLLIN)};
      CHECK(poll(all, 3, 20'000) > 0);
      ++woken;
    }));
  settle();
  put(g_pairs[0].b, 'x');
  join_all(polling);
  CHECK_EQ(woken.load(), threads);
  CHECK_EQ(get(g_pairs[0].a), 'x');
}

// To write and to read at once, on a socket that is full.
void both_ways() {
  const Pair full = unix_pair();
  char text[4096] = {};
  CHECK_EQ(fcntl(full.a, F_SETFL, O_NONBLOCK), 0);
  while (write(full.a, text, sizeof text) > 0) {
  }
  const pthread_t drains = start([&] {
    settle();
    while (recv(full.b, text, sizeof text, MSG_DONTWAIT) > 0) {
    }
  });
  pollfd all[2] = {asks(full.a, POLLIN | POLLOUT), asks(g_pairs[2].a)};
  CHECK_EQ(poll(all, 2, 20'000), 1);
  CHECK_EQ(all[0].revents, POLLOUT);
  join(drains);
  pollfd one = asks(full.a, POLLIN | POLLOUT);
  CHECK_EQ(poll(&one, 1, 20'000), 1);
  CHECK_EQ(one.revents, POLLOUT);
  close(full.a);
  close(full.b);
}

void on_signal(int) {}

void signals() {
  install(SIGUSR1, on_signal, SA_RESTART);
  std::atomic<bool> ended{false};
  const pthread_t polls = start([&] {
    pollfd all[2] = {asks(g_pairs[0].a), asks(g_pairs[1].a)};
    CHECK_ERRNO(poll(all, 2, -1), EINTR);  // never restarted: signal(7)
    ended = true;
  });
  while (!ended) {
    nap(kMs);
    kill_perhaps_ended(polls, SIGUSR1);
  }
  join(polls);
}

// What is polled is closed, and its number used again: the others still answer.
void closed() {
  for (int i = 0; i < 20; ++i) {
    const Pair gone = unix_pair();
    const pthread_t polls = start([&] {
      pollfd all[2] = {asks(gone.a), asks(g_pairs[3].a)};
      CHECK(poll(all, 2, 20'000) > 0);
    });
    if (i % 2) settle();
    close(gone.a);
    const int again = dup(g_pairs[4].a);
    put(g_pairs[3].b, 'x');
    join(polls);
    CHECK_EQ(get(g_pairs[3].a), 'x');
    close(again);
    close(gone.b);
  }
}

}  // namespace

int main() {
  each_answers();
  time_outs();
  together();
  both_ways();
  signals();
  closed();
  // Threads that have polled are gone; the same descriptors are still waited for.
  put(g_pairs[0].b, 'y');
  pollfd all[2] = {asks(g_pairs[1].a), asks(g_pairs[0].a)};
  CHECK_EQ(poll(all, 2, 20'000), 1);
  const pid_t child = fork();
  if (child == 0) {
    const pthread_t polls = start([] {
      pollfd both[2] = {asks(g_pairs[1].a), asks(g_pairs[2].a)};
      CHECK_EQ(poll(both, 2, 20), 0);
    });
    join(polls);
    _exit(0);
  }
  wait_exit(child, 0);
}
