// abi: threads=6 descriptors=events
// Kinds of sockets that differ: datagrams to a full receiver, packets with bounds, reads that wait for a number of bytes, a
// child that closes and opens numbers before it has threads.
#include <sys/un.h>

#include "descriptor.h"

namespace {

// Nobody tells a Unix datagram socket that one of those it may send to can take more.
void datagrams() {
  const int to = socket(AF_UNIX, SOCK_DGRAM, 0), from = socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "upcall-%d", getpid());
  CHECK_EQ(bind(to, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  constexpr int kMessages = 400;
  const pthread_t sender = start([&] {
    for (int i = 0; i < kMessages; ++i)
      CHECK_EQ(sendto(from, &i, sizeof i, 0, reinterpret_cast<sockaddr*>(&address), sizeof address),
               sizeof i);
  });
  settle();
  for (int i = 0; i < kMessages; ++i) {
    int got = -1;
    CHECK_EQ(read(to, &got, sizeof got), sizeof got);
    CHECK_EQ(got, i);
    if (i % 50 == 0) nap(kMs);
  }
  join(sender);
  close(to);
  close(from);
}

void packets(const Pair& p) {
  const pthread_t reader = start([&] {
    char text[64];
    for (int i = 1; i < 40; ++i) CHECK_EQ(read(p.a, text, sizeof text), i);
  });
  const char text[64] = {};
  for (int i = 1; i < 40; ++i) {
    CHECK_EQ(write(p.b, text, static_cast<size_t>(i)), i);
    if (i % 10 == 0) settle();
  }
  join(reader);
  close_both(p);
}

void waits_for_four() {
  const Pair p = tcp_pair();
  low_water(p.a);
  reads_four(p);
  close_both(p);
}

void child_without_threads() {
  const Pair p = unix_pair();
  const pthread_t reader = start([&] { CHECK_EQ(get(p.a), 'x'); });
  settle();
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    close_both(p);
    const Pair own = pipe_pair();  // the same numbers
    CHECK_EQ(own.a, p.a < p.b ? p.a : p.b);
    const pthread_t other = start([&] { CHECK_EQ(get(own.a), 'c'); });
    settle();
    put(own.b, 'c');
    join(other);
    _exit(0);
  }
  int status;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  put(p.b, 'x');
  join(reader);
  close_both(p);
}

}  // namespace

int main() {
  datagrams();
  packets(unix_pair(SOCK_SEQPACKET));
  packets(unix_pair(SOCK_DGRAM));
  int ends[2];
  CHECK_EQ(pipe2(ends, O_DIRECT), 0);
  packets({ends[0], ends[1]});
  waits_for_four();
  child_without_threads();
}
