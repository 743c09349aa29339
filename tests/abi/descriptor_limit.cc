// abi: threads=6 descriptors=events timeout=20
// No number is free when the first thread waits: it waits all the same, and so do others once numbers are free again.
#include <sys/epoll.h>
#include <sys/resource.h>

#include "descriptor.h"

int main() {
  const Pair u = unix_pair(), p = pipe_pair(), t = tcp_pair();
  sockaddr_in address;
  const int at = listener(&address);
  const int set = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLIN;
  CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, u.a, &event), 0);
  join(start([] {}));  // a runtime that begins with the first thread needs numbers for that
  rlimit limit;
  CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit before = limit;
  limit.rlim_cur = 32;
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<int> all;
  for (int fd; (fd = dup(0)) >= 0;) all.push_back(fd);
  CHECK_EQ(errno, EMFILE);
  for (const bool full : {true, false}) {
    if (!full) {
      for (const int fd : all) close(fd);
      CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    }
    std::vector<pthread_t> threads;
    for (const Pair& each : {u, p, t}) threads.push_back(start([each] { CHECK_EQ(get(each.a), 'x'); }));
    threads.push_back(start([&] {
      pollfd asked = {t.b, POLLIN, 0};
      CHECK_EQ(poll(&asked, 1, -1), 1);
      CHECK_EQ(get(t.b), 'y');
    }));
    settle();
    for (const Pair& each : {u, p, t}) put(each.b, 'x');
    put(t.a, 'y');
    join_all(threads);
    const pthread_t waits = start([&] {
      epoll_event got;
      CHECK_EQ(epoll_wait(set, &got, 1, -1), 1);
      CHECK_EQ(get(u.a), 'z');
    });
    settle();
    put(u.b, 'z');
    join(waits);
  }
  const pthread_t acceptor = start([&] {
    const int fd = accept(at, nullptr, nullptr);
    CHECK(fd >= 0);
    close(fd);
  });
  settle();
  close(connected(address));
  join(acceptor);
}
