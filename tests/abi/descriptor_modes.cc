// abi: threads=3 descriptors=events
// O_NONBLOCK set and cleared on a descriptor, by fcntl, ioctl and through a copy of it; single calls that must not wait.
#include <sys/ioctl.h>

#include "descriptor.h"

namespace {

// One call that waits, so that what the runtime knows of the descriptor is old afterwards.
void wait_once(const Pair& p) {
  const pthread_t reader = start([&] { CHECK_EQ(get(p.a), 'x'); });
  settle();
  put(p.b, 'x');
  join(reader);
}

void modes(const Pair& p) {
  char text[16];
  wait_once(p);
  CHECK_EQ(fcntl(p.a, F_SETFL, O_NONBLOCK), 0);
  CHECK_ERRNO(read(p.a, text, sizeof text), EAGAIN);
  CHECK_EQ(fcntl(p.a, F_SETFL, 0), 0);
  wait_once(p);
  int on = 1;
  CHECK_EQ(ioctl(p.a, FIONBIO, &on), 0);
  CHECK_ERRNO(read(p.a, text, sizeof text), EAGAIN);
  on = 0;
  CHECK_EQ(ioctl(p.a, FIONBIO, &on), 0);
  wait_once(p);
  const int copy = dup(p.a);
  CHECK_EQ(fcntl(copy, F_SETFL, O_NONBLOCK), 0);
  CHECK_ERRNO(read(p.a, text, sizeof text), EAGAIN);
  CHECK_EQ(fcntl(copy, F_SETFL, 0), 0);
  close(copy);
  wait_once(p);
  CHECK_EQ(fcntl(p.a, F_GETFL) & O_NONBLOCK, 0);  // the runtime has not changed it
}

}  // namespace

int main() {
  const Pair t = tcp_pair(), u = unix_pair(), p = pipe_pair();
  modes(t);
  modes(u);
  modes(p);
  char byte;
  CHECK_ERRNO(recv(t.a, &byte, 1, MSG_DONTWAIT), EAGAIN);
  put(t.b, 'x');
  settle();
  CHECK_EQ(recv(t.a, &byte, 1, MSG_PEEK), 1);
  CHECK_EQ(get(t.a), 'x');
  wait_once(t);
  // Urgent data stops a read short of what is there.
  CHECK_EQ(send(t.b, "ab", 2, 0), 2);
  CHECK_EQ(send(t.b, "!", 1, MSG_OOB), 1);
  CHECK_EQ(send(t.b, "cd", 2, 0), 2);
  settle();
  char text[16];
  size_t got = 0;
  while (got < 4) {
    const ssize_t n = read(t.a, text + got, sizeof text - got);
    CHECK(n > 0);
    got += static_cast<size_t>(n);
  }
  CHECK_EQ(memcmp(text, "abcd", 4), 0);
}
