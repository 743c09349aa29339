// abi: threads=20 descriptors=events counters=lone_waits:200 timeout=60
// One thread waits for the same descriptor again and again, and nothing else is to run: it waits in the kernel. What happens to the
// others meanwhile, and to the descriptor, is as ever.
#include <sys/epoll.h>

#include <functional>

#include "descriptor.h"

namespace {

constexpr int kWarm = 100;  // it waits so after 64

// Another process, which answers all it gets; a gap before each answer, so that its client has to wait.
struct Echo {
  Pair ends;
  pid_t child;
  explicit Echo(const Pair& pair) : ends(pair), child(fork()) {
    if (child) {
      CHECK_EQ(close(ends.b), 0);
      return;
    }
    close(ends.a);
    char byte;
    while (read(ends.b, &byte, 1) == 1) {
      if (byte == 'l') nap(30 * kMs);
      if (byte != 'n' && write(ends.b, &byte, 1) != 1) break;
    }
    _exit(0);
  }
  void ask(char byte = 'q') const {
    put(ends.a, byte);
    CHECK_EQ(get(ends.a), byte);
  }
  void warm_up() const {
    for (int i = 0; i < kWarm; ++i) ask();
  }
  void end() const {
    CHECK_EQ(close(ends.a), 0);
    wait_exit(child, 0);
  }
};

void in_thread(const std::function<void()>& body) { join(start(body)); }

// Threads that become ready while the other one waits in the kernel: by time, by an event, by a lock.
void others(const Echo& e) {
  const Pair silent = unix_pair();
  const pthread_t waits = start([&] { CHECK_EQ(get(silent.a), 'w'); });
  const pthread_t sleeps = start([] {
    for (int i = 0; i < 20; ++i) {
      const int64_t begun = now_ns();
      nap(2 * kMs);
      CHECK(now_ns() - begun < 1'000 * kMs);
    }
  });
  for (int i = 0; i < 20; ++i) e.ask('l');
  join(sleeps);
  const pid_t child = fork();
  if (child == 0) {
    nap(20 * kMs);
    put(silent.b, 'w');
    _exit(0);
  }
  std::atomic<bool> told{false};
  const pthread_t sees = start([&] {
    join(waits);
    told = true;
  });
  const int64_t begun = now_ns();
  while (!told) e.ask();
  CHECK(now_ns() - begun < 5 * kSecond);
  join(sees);
  wait_exit(child, 0);
  close_both(silent);
}

// Its modes change, and a signal comes.
void modes(const Echo& e) {
  e.warm_up();
  char byte;
  timeval limit = {0, 20'000};
  CHECK_EQ(setsockopt(e.ends.a, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  CHECK_ERRNO(read(e.ends.a, &byte, 1), EAGAIN);
  limit.tv_usec = 0;
  CHECK_EQ(setsockopt(e.ends.a, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  e.warm_up();
  CHECK_EQ(fcntl(e.ends.a, F_SETFL, O_NONBLOCK), 0);
  CHECK_ERRNO(read(e.ends.a, &byte, 1), EAGAIN);
  CHECK_EQ(fcntl(e.ends.a, F_SETFL, 0), 0);
  for (const int flags : {0, SA_RESTART}) {
    install(
        SIGUSR1, [](int) {}, flags);
    e.warm_up();
    const pthread_t reader = pthread_self();
    const pthread_t sends = start([&] {
      nap(30 * kMs);
      CHECK_EQ(pthread_kill(reader, SIGUSR1), 0);
      nap(30 * kMs);
      if (flags) put(e.ends.a, 'r');
    });
    if (flags)
      CHECK_EQ(get(e.ends.a), 'r');
    else
      CHECK_ERRNO(read(e.ends.a, &byte, 1), EINTR);
    join(sends);
  }
}

void cancelled(const Echo& e) {
  const pthread_t reads = start([&] {
    e.warm_up();
    get(e.ends.a);
  });
  nap(300 * kMs);
  CHECK_EQ(pthread_cancel(reads), 0);
  CHECK(join(reads) == PTHREAD_CANCELED);
  e.ask();
}

// A second thread reads, or writes, while the first one is in the kernel; then the connection is shut down there.
void shared(const Echo& e) {
  e.warm_up();
  std::atomic<int> got{0};
  const auto reader = [&] {
    char byte;
    while (read(e.ends.a, &byte, 1) == 1) ++got;
  };
  std::vector<pthread_t> readers;
  for (int i = 0; i < 3; ++i) readers.push_back(start(reader));
  for (int i = 0; i < 500; ++i) {
    put(e.ends.a, 'q');
    if (i % 50 == 0) nap(kMs);
  }
  for (int i = 0; got < 500 && i < 5000; ++i) nap(kMs);
  CHECK_EQ(got, 500);
  CHECK_EQ(shutdown(e.ends.a, SHUT_RD), 0);
  join_all(readers);
}

void by_epoll(const Echo& e) {
  const int epoll = epoll_create1(0);
  epoll_event event = {}, told = {};
  event.events = EPOLLIN;
  event.data.fd = e.ends.a;
  CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, e.ends.a, &event), 0);
  const auto ask = [&] {
    put(e.ends.a, 'q');
    CHECK_EQ(epoll_wait(epoll, &told, 1, -1), 1);
    CHECK_EQ(told.data.fd, e.ends.a);
    CHECK_EQ(get(e.ends.a), 'q');
  };
  for (int i = 0; i < 2 * kWarm; ++i) ask();
  int64_t begun = now_ns();
  CHECK_EQ(epoll_wait(epoll, &told, 1, 50), 0);
  CHECK(now_ns() - begun >= 49 * kMs);
  // Added while it waits.
  const Pair more = unix_pair();
  put(more.b, 'm');
  for (int i = 0; i < kWarm; ++i) ask();
  const pthread_t adds = start([&] {
    nap(30 * kMs);
    epoll_event added = {};
    added.events = EPOLLIN;
    added.data.fd = more.a;
    CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, more.a, &added), 0);
  });
  CHECK_EQ(epoll_wait(epoll, &told, 1, 10'000), 1);
  CHECK_EQ(told.data.fd, more.a);
  join(adds);
  close(epoll);
  close_both(more);
}

void accepts() {
  sockaddr_in address;
  const int at = listener(&address);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 2 * kWarm; ++i) {
      const int fd = connected(address);
      if (get(fd) != 'a') _exit(1);
      close(fd);
    }
    _exit(0);
  }
  for (int i = 0; i < 2 * kWarm; ++i) {
    const int fd = accept(at, nullptr, nullptr);
    CHECK(fd >= 0);
    put(fd, 'a');
    close(fd);
  }
  wait_exit(child, 0);
  close(at);
}

}  // namespace

int main() {
  for (const bool tcp : {false, true}) {
    const Echo e(tcp ? tcp_pair() : unix_pair());
    in_thread([&] {
      e.warm_up();
      others(e);
      modes(e);
      by_epoll(e);
      e.warm_up();
    });
    cancelled(e);
    shared(e);
    e.end();
  }
  accepts();
}
