// abi: threads=6 descriptors=events timeout=20
// O_NONBLOCK set while threads wait in a socket: their calls began as ones that wait, and go on, also when another one takes what
// has come.
#include <sys/ioctl.h>

#include "descriptor.h"

namespace {

void toggled(const Pair& p, bool by_ioctl) {
  std::atomic<int> got{0};
  std::vector<pthread_t> readers;
  for (int i = 0; i < 3; ++i)
    readers.push_back(start([&] {
      get(p.a);
      ++got;
    }));
  settle();
  int on = 1;
  if (by_ioctl)
    CHECK_EQ(ioctl(p.a, FIONBIO, &on), 0);
  else
    CHECK_EQ(fcntl(p.a, F_SETFL, O_NONBLOCK), 0);
  settle();
  CHECK_EQ(got.load(), 0);
  for (int i = 1; i <= 3; ++i) {
    put(p.b, 'x');
    while (got < i) nap(kMs);
    settle();
    CHECK_EQ(got.load(), i);
  }
  join_all(readers);
  char byte;
  CHECK_ERRNO(read(p.a, &byte, 1), EAGAIN);
  close_both(p);
}

}  // namespace

int main() {
  toggled(unix_pair(), false);
  toggled(tcp_pair(), true);
}
