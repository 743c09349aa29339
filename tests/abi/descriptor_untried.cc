// abi: threads=6 descriptors=events counters=event_waits:100 timeout=60
// A pipe between two threads that take turns: the reader has learnt that a try is in vain, and waits without one. What it then does
// not expect is found out all the same, and soon: data that is there, O_NONBLOCK set here or by another process, the end.
#include "descriptor.h"

namespace {

// Turns between two tests: after 3 the reader does not try first, after 67 more the pipe is not watched.
int warm = 20;

// Answers all it gets, until the end.
pthread_t echo(int in, int out) {
  return start([=] {
    char byte;
    while (read(in, &byte, 1) == 1) put(out, byte);
    close(out);
  });
}

struct Turns {
  Pair there = pipe_pair(), back = pipe_pair();
  pthread_t other = echo(there.a, back.b);
  void take(int n) const {
    for (int i = 0; i < n; ++i) {
      const char sent = static_cast<char>('a' + i % 26);
      put(there.b, sent);
      CHECK_EQ(get(back.a), sent);
    }
  }
  void end() const {
    close(there.b);
    char byte;
    CHECK_EQ(read(back.a, &byte, 1), 0);  // it has closed its side
    CHECK_EQ(read(back.a, &byte, 1), 0);
    join(other);
    close(there.a), close(back.a);
  }
};

// More than is read at once.
void data_is_there(const Turns& t) {
  for (int i = 0; i < 20; ++i) {
    put(t.there.b, '1');
    put(t.there.b, '2');
    put(t.there.b, '3');
    CHECK_EQ(get(t.back.a), '1');
    nap(kMs / 10);
    CHECK_EQ(get(t.back.a), '2');
    CHECK_EQ(get(t.back.a), '3');
    t.take(warm / 4);
  }
}

// The same, and the others are about to block in the kernel, or compute, and never write.
void nobody_writes(const Turns& t) {
  const Pair silent = pipe_pair();
  std::atomic<bool> stop{false};
  const pthread_t computes = start([&] {
    while (!stop) burn(kMs / 10);
  });
  const pthread_t blocks = start([&] {
    while (!stop) nap(kMs);
  });
  for (int i = 0; i < 10; ++i) {
    t.take(warm / 2);
    put(t.there.b, 'p');
    put(t.there.b, 'q');
    CHECK_EQ(get(t.back.a), 'p');
    nap(2 * kMs);  // 'q' is there now
    const int64_t begun = now_ns();
    CHECK_EQ(get(t.back.a), 'q');
    CHECK(now_ns() - begun < 2'000 * kMs);
  }
  stop = true;
  join(computes);
  join(blocks);
  close_both(silent);
}

void nonblocking(const Turns& t) {
  char byte;
  for (const bool other_process : {false, true}) {
    t.take(warm);
    const pthread_t beside = start([] { burn(5 * kMs); });
    if (other_process) {
      const pid_t child = fork();
      if (child == 0) _exit(fcntl(t.back.a, F_SETFL, O_NONBLOCK) == 0 ? 0 : 1);
      wait_exit(child, 0);
    } else {
      CHECK_EQ(fcntl(t.back.a, F_SETFL, O_NONBLOCK), 0);
    }
    CHECK_ERRNO(read(t.back.a, &byte, 1), EAGAIN);
    CHECK_EQ(fcntl(t.back.a, F_SETFL, 0), 0);
    join(beside);
  }
  t.take(warm);
}

// Somebody who asks again and again keeps the processor while others compute.
void never_gives_way() {
  const Pair p = pipe_pair();
  CHECK_EQ(fcntl(p.a, F_SETFL, O_NONBLOCK), 0);
  std::atomic<bool> stop{false};
  const pthread_t computes = start([&] {
    while (!stop) burn(kMs / 10);
  });
  char byte;
  int64_t used = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < 2000; ++i) CHECK_ERRNO(read(p.a, &byte, 1), EAGAIN);
  used = now_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
  // A turn of the other one each time would be 2,000 slices of 100 us at least.
  CHECK(used < 150 * kMs);
  stop = true;
  join(computes);
  close_both(p);
}

// The number of a pipe of our own, which another process has never had, comes to stand for one that is shared.
void number_of_its_own() {
  const Pair shared = pipe_pair();
  const pid_t child = fork();
  if (child == 0) {
    nap(100 * kMs);
    _exit(fcntl(shared.a, F_SETFL, O_NONBLOCK) == 0 ? 0 : 1);
  }
  const Pair unused = pipe_pair();
  close_both(unused);
  const int again = dup(shared.a);
  const pthread_t reads = start([=] {
    CHECK_EQ(get(again), 'x');
    nap(150 * kMs);
    char byte;
    CHECK_ERRNO(read(again, &byte, 1), EAGAIN);
  });
  nap(20 * kMs);
  put(shared.b, 'x');
  join(reads);
  wait_exit(child, 0);
  close(again);
  close_both(shared);
}

// A signal ends it, or does not.
void interrupted(const Turns& t) {
  struct sigaction action = {};
  static std::atomic<int> handled{0};
  handled = 0;
  action.sa_handler = [](int) { ++handled; };
  CHECK_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  t.take(warm);
  const pthread_t reads = start([&] {
    char byte;
    CHECK_ERRNO(read(t.back.a, &byte, 1), EINTR);
  });
  settle();
  CHECK_EQ(pthread_kill(reads, SIGUSR1), 0);
  join(reads);
  CHECK_EQ(handled, 1);
  t.take(warm);
}

// The pipe is not watched any more when another process writes to it, or closes it.
void written_outside(const Turns& t) {
  std::atomic<bool> stop{false};
  const pthread_t computes = start([&] {
    while (!stop) burn(kMs / 10);
  });
  t.take(warm);
  for (int i = 0; i < 5; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      nap(20 * kMs);
      put(t.there.b, 'o');
      _exit(0);
    }
    const int64_t begun = now_ns();
    CHECK_EQ(get(t.back.a), 'o');  // echoed by the other thread
    CHECK(now_ns() - begun < 2'000 * kMs);
    wait_exit(child, 0);
    t.take(warm);
  }
  stop = true;
  join(computes);
}

// More than the pipe takes, while its reader waits without a try; and several readers.
void large_writes(const Turns& t) {
  t.take(warm);
  const Pair p = pipe_pair();
  std::atomic<int> got{0};
  std::vector<pthread_t> readers;
  for (int i = 0; i < 3; ++i)
    readers.push_back(start([&] {
      char buffer[4096];
      for (ssize_t n; (n = read(p.a, buffer, sizeof buffer)) > 0;) got += static_cast<int>(n);
    }));
  int sent = 0;
  std::vector<char> data(300'000, 'd');
  for (int i = 0; i < 200; ++i) {
    put(p.b, 'x'), ++sent;
    sched_yield();
  }
  CHECK_EQ(write(p.b, data.data(), data.size()), static_cast<ssize_t>(data.size()));
  sent += static_cast<int>(data.size());
  CHECK_EQ(close(p.b), 0);
  join_all(readers);
  CHECK_EQ(got, sent);
  close(p.a);
}

// Two readers of a pipe that is not watched; what comes is from another process. Neither is forgotten when the other one finds out.
void two_readers_outside() {
  const Turns t;
  t.take(warm);
  const Pair p = pipe_pair();
  std::atomic<bool> stop{false};
  const pthread_t yields = start([&] {
    while (!stop) sched_yield();
  });
  std::atomic<int> got{0};
  const auto reader = [&] {
    char byte;
    while (read(p.a, &byte, 1) == 1) ++got;
  };
  const pthread_t first = start(reader);
  for (int i = 0; i < warm; ++i) {
    put(p.b, 'x');
    while (got <= i) sched_yield();
  }
  const pthread_t second = start(reader);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 40; ++i) {
      put(p.b, 'o');
      nap(i % 3 * kMs / 2);
    }
    _exit(0);
  }
  wait_exit(child, 0);
  const int64_t begun = now_ns();
  while (got < warm + 40) {
    CHECK(now_ns() - begun < 2 * kSecond);
    nap(kMs);
  }
  // Both are still told of it: the end.
  CHECK_EQ(close(p.b), 0);
  join(first);
  join(second);
  stop = true;
  join(yields);
  close(p.a);
  t.end();
}

// Every write wakes all of them, and one finds it: the others wait on, without a kernel thread each.
void many_readers() {
  const Pair p = pipe_pair();
  std::atomic<int> got{0};
  std::vector<pthread_t> readers;
  for (int i = 0; i < 40; ++i)
    readers.push_back(start([&] {
      char byte;
      while (read(p.a, &byte, 1) == 1) ++got;
    }));
  std::atomic<bool> stop{false};
  const pthread_t yields = start([&] {
    while (!stop) sched_yield();
  });
  for (int i = 0; i < 10 * warm; ++i) {
    put(p.b, 'x');
    while (got <= i) sched_yield();
  }
  CHECK_EQ(close(p.b), 0);
  join_all(readers);
  stop = true;
  join(yields);
  close(p.a);
}

}  // namespace

int main() {
  const Turns t;
  for (const int turns : {20, 200}) {
    warm = turns;
    t.take(100);
    data_is_there(t);
    nobody_writes(t);
    nonblocking(t);
    never_gives_way();
    number_of_its_own();
    interrupted(t);
    written_outside(t);
    large_writes(t);
    two_readers_outside();
    many_readers();
  }
  t.end();
}
