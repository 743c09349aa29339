// abi: threads=12 descriptors=events timeout=20
// Several numbers for one file, in this process or on their way to it in a message: each is waited for by itself, and closing one
// ends no wait for another.
#include "descriptor.h"

namespace {

void numbers(const Pair& p) {
  const int copy = dup(p.a), third = fcntl(p.a, F_DUPFD, 100);
  std::atomic<int> got{0};
  std::vector<pthread_t> readers;
  for (const int fd : {p.a, copy, third, copy})
    readers.push_back(start([&, fd] {
      get(fd);
      ++got;
    }));
  settle();
  put(p.b, '1');
  while (got < 1) nap(kMs);
  settle();
  CHECK_EQ(got.load(), 1);
  CHECK_EQ(close(third), 0);
  settle();
  CHECK_EQ(got.load(), 1);
  put(p.b, '2');
  while (got < 2) nap(kMs);
  CHECK_EQ(close(copy), 0);
  CHECK_EQ(write(p.b, "34", 2), 2);
  join_all(readers);
  const pthread_t last = start([&] { CHECK_EQ(get(p.a), '5'); });
  settle();
  put(p.b, '5');
  join(last);
  close_both(p);
}

void messages(const Pair& p) {
  const Pair way = unix_pair();
  const pthread_t receiver = start([&] {
    const int fd = passed(way.a);
    put(way.a, 'k');
    CHECK_EQ(get(way.a), 'g');
    CHECK_EQ(get(fd), '1');
    CHECK_EQ(get(fd), '2');
    char byte;
    CHECK_EQ(read(fd, &byte, 1), 0);
    close(fd);
  });
  // Waits for the original while that is passed on, and closed.
  const pthread_t reader = start([&] { CHECK_EQ(get(p.a), '0'); });
  settle();
  pass(way.b, p.a);
  put(p.b, '0');
  join(reader);
  CHECK_EQ(get(way.b), 'k');
  CHECK_EQ(close(p.a), 0);
  put(way.b, 'g');
  settle();
  put(p.b, '1');
  // Others use the number that the original had, and its bucket.
  const Pair other = unix_pair();
  CHECK_EQ(other.a, p.a);
  const pthread_t waits = start([&] { CHECK_EQ(get(other.a), 'n'); });
  settle();
  put(p.b, '2');
  settle();
  put(other.b, 'n');
  join(waits);
  CHECK_EQ(close(p.b), 0);
  join(receiver);
  close_both(other), close_both(way);
}

}  // namespace

int main() {
  numbers(unix_pair());
  numbers(tcp_pair());
  numbers(pipe_pair());
  messages(unix_pair());
  messages(pipe_pair());
  messages(tcp_pair());
}
