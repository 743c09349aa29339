// abi: threads=28 descriptors=events timeout=40
// The program's own epoll instances, waited for by many threads: once, exclusively, at edges, and one inside the other.
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "descriptor.h"

namespace {

void add(int set, int fd, uint32_t events, uint64_t data, int how = EPOLL_CTL_ADD) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = data;
  CHECK_EQ(epoll_ctl(set, how, fd, &event), 0);
}

// Each byte is read by the one thread that was told, which arms the descriptor again.
void once() {
  constexpr int kPairs = 8, kThreads = 6, kRounds = 100;
  const int set = epoll_create1(0), end = eventfd(0, 0);
  std::vector<Pair> pairs;
  std::vector<std::atomic<int>> inside(kPairs);
  std::atomic<int> got{0};
  for (int i = 0; i < kPairs; ++i) {
    pairs.push_back(i % 3 == 0 ? tcp_pair() : i % 3 == 1 ? unix_pair() : pipe_pair());
    add(set, pairs.back().a, EPOLLIN | EPOLLONESHOT, static_cast<uint64_t>(i));
  }
  add(set, end, EPOLLIN, 1000);
  std::vector<pthread_t> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.push_back(start([&] {
      for (;;) {
        epoll_event event;
        const int n = epoll_wait(set, &event, 1, -1);
        CHECK_EQ(n, 1);
        if (event.data.u64 == 1000) return;
        const auto i = static_cast<size_t>(event.data.u64);
        CHECK_EQ(inside[i]++, 0);
        get(pairs[i].a);
        --inside[i];
        ++got;
        add(set, pairs[i].a, EPOLLIN | EPOLLONESHOT, i, EPOLL_CTL_MOD);
      }
    }));
  for (int round = 0; round < kRounds; ++round) {
    for (const Pair& p : pairs) put(p.b, 'x');
    if (round % 20 == 0) settle();
    if (round % 7 == 0) sched_yield();
  }
  const int64_t limit = now_ns() + 10 * kSecond * time_factor();
  while (got < kPairs * kRounds) {
    if (now_ns() > limit) FAIL("%d of %d", got.load(), kPairs * kRounds);
    nap(kMs);
  }
  CHECK_EQ(eventfd_write(end, 1), 0);
  join_all(threads);
  for (const Pair& p : pairs) close_both(p);
  close(set), close(end);
}

// One listener in an instance of each thread; every connection finds somebody.
void exclusively() {
  sockaddr_in address;
  const int at = listener(&address);
  CHECK_EQ(fcntl(at, F_SETFL, O_NONBLOCK), 0);
  const int end = eventfd(0, 0);
  std::atomic<int> accepted{0};
  std::vector<pthread_t> threads;
  for (int t = 0; t < 8; ++t)
    threads.push_back(start([&] {
      const int set = epoll_create1(0);
      add(set, at, EPOLLIN | EPOLLEXCLUSIVE, 1);
      add(set, end, EPOLLIN, 2);
      for (;;) {
        epoll_event event;
        CHECK_EQ(epoll_wait(set, &event, 1, -1), 1);
        if (event.data.u64 == 2) break;
        const int fd = accept4(at, nullptr, nullptr, SOCK_NONBLOCK);
        if (fd < 0) {
          CHECK_EQ(errno, EAGAIN);
          continue;
        }
        CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
        char byte;
        CHECK(read(fd, &byte, 1) == 0 || errno == EAGAIN);
        ++accepted;
        close(fd);
      }
      close(set);
    }));
  settle();
  for (int i = 0; i < 200; ++i) {
    close(connected(address));
    if (i % 50 == 0) settle();
  }
  const int64_t limit = now_ns() + 10 * kSecond * time_factor();
  while (accepted < 200) {
    if (now_ns() > limit) FAIL("%d accepted", accepted.load());
    nap(kMs);
  }
  CHECK_EQ(eventfd_write(end, 1), 0);
  join_all(threads);
  close(at), close(end);
}

// Inner instances in an outer one, at edges: each byte that comes is told of above.
void nested(uint32_t inner_mode, uint32_t outer_mode) {
  const Pair p = unix_pair(), q = pipe_pair();
  const int inner = epoll_create1(0), outer = epoll_create1(0);
  add(inner, p.a, EPOLLIN | inner_mode, 1);
  add(inner, q.a, EPOLLIN | inner_mode, 2);
  add(outer, inner, EPOLLIN | outer_mode, 3);
  std::atomic<int> got{0};
  const pthread_t t = start([&] {
    for (int i = 0; i < 40;) {
      epoll_event event[4];
      CHECK_EQ(epoll_wait(outer, event, 4, 10'000), 1);
      CHECK_EQ(event[0].data.u64, 3);
      for (int n; (n = epoll_wait(inner, event, 4, 0)) != 0;) {
        CHECK(n > 0);
        for (int e = 0; e < n; ++e) {
          get(event[e].data.u64 == 1 ? p.a : q.a);
          ++i, ++got;
        }
      }
    }
  });
  for (int i = 0; i < 40; ++i) {
    if (i % 8 == 0) settle();
    put(i % 2 ? p.b : q.b, 'x');
    while (got <= i) sched_yield();
  }
  join(t);
  // Threads in both at once: who waits inside is told, too.
  std::atomic<int> told{0};
  std::vector<pthread_t> threads;
  for (const int set : {outer, inner})
    threads.push_back(start([&, set] {
      epoll_event event;
      const int n = epoll_wait(set, &event, 1, 500);
      CHECK(n == 0 || n == 1);
      told += n;
    }));
  settle();
  put(p.b, 'y');
  join_all(threads);
  CHECK(told >= 1);
  CHECK_EQ(get(p.a), 'y');
  close_both(p), close_both(q), close(inner), close(outer);
}

// Instances that are changed while a thread waits.
void changed() {
  const Pair p = tcp_pair();
  const int set = epoll_create1(0);
  const pthread_t t = start([&] {
    epoll_event event[2];
    CHECK_EQ(epoll_wait(set, event, 2, -1), 1);
    CHECK_EQ(event[0].data.u64, 7);
    CHECK_EQ(event[0].events, EPOLLOUT);
  });
  settle();
  add(set, p.a, EPOLLIN, 6);
  settle();
  add(set, p.a, EPOLLOUT | EPOLLET, 7, EPOLL_CTL_MOD);
  join(t);
  join(start([&] {
    epoll_event event;
    CHECK_EQ(epoll_wait(set, &event, 1, 20), 0);
    CHECK_EQ(epoll_wait(set, &event, 1, 0), 0);
    CHECK_ERRNO(epoll_wait(set, &event, 0, -1), EINVAL);
    CHECK_ERRNO(epoll_wait(p.a, &event, 1, -1), EINVAL);
    CHECK_ERRNO(epoll_wait(777, &event, 1, -1), EBADF);
  }));
  close_both(p), close(set);
}

}  // namespace

int main() {
  once();
  exclusively();
  for (const uint32_t inner : {0u, static_cast<uint32_t>(EPOLLET)})
    for (const uint32_t outer : {0u, static_cast<uint32_t>(EPOLLET)}) nested(inner, outer);
  changed();
}
