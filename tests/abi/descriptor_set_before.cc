// abi: threads=4 descriptors=events timeout=10
// Options of a socket that were set before there were threads, or through a copy of its descriptor.
#include "descriptor.h"

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : nullptr;
  const Pair t = tcp_pair(), u = unix_pair();
  low_water(t.a);
  low_water(u.a);
  const timeval tv = {0, 60'000};
  const Pair limited = unix_pair();
  CHECK_EQ(setsockopt(limited.a, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv), 0);
  join(start([&] {
    char byte;
    CHECK_ERRNO(recv(limited.a, &byte, 1, 0), EAGAIN);
  }));
  if (!only || *only == 't') reads_four(t);
  if (!only || *only == 'u') reads_four(u);
  const Pair copied = tcp_pair();
  const int copy = dup(copied.a);
  low_water(copy);
  if (!only || *only == 'c') reads_four(copied);
}
