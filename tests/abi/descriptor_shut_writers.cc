// abi: threads=4 descriptors=events timeout=10
// A thread waits to write to a Unix socket that is full, when its own process shuts that direction down, or the peer stops to read.
#include <signal.h>

#include "descriptor.h"

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : nullptr;
  signal(SIGPIPE, SIG_IGN);
  for (const bool by_peer : {false, true}) {
    if (only && (*only == 'p') != by_peer) continue;
    for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
      const Pair p = unix_pair(type);
      CHECK_EQ(fcntl(p.a, F_SETFL, O_NONBLOCK), 0);
      while (write(p.a, "x", 1) == 1) {
      }
      CHECK_EQ(fcntl(p.a, F_SETFL, 0), 0);
      const pthread_t writer = start([&] { CHECK_ERRNO(write(p.a, "x", 1), EPIPE); });
      settle();
      CHECK_EQ(by_peer ? shutdown(p.b, SHUT_RD) : shutdown(p.a, SHUT_WR), 0);
      join(writer);
      close_both(p);
    }
  }
}
