// abi: threads=2 descriptors=events timeout=10
// SO_RCVTIMEO of Unix datagram sockets.
#include "descriptor.h"

int main() {
  const Pair p = unix_pair(SOCK_DGRAM);
  const timeval tv = {0, 60'000};
  CHECK_EQ(setsockopt(p.a, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv), 0);
  for (int i = 0; i < 2; ++i)
    join(start([&] {
      char byte;
      CHECK_ERRNO(recv(p.a, &byte, 1, 0), EAGAIN);
      CHECK_ERRNO(read(p.a, &byte, 1), EAGAIN);
      put(p.b, 'x');
      CHECK_EQ(get(p.a), 'x');
    }));
}
