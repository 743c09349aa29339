// abi: threads=8 descriptors=events
// Ends of streams: data and the end at once, shutdown from both sides, a reset, a writer whose reader is gone.
#include <signal.h>

#include "descriptor.h"

namespace {

// A read that takes less than it asks for, and the end, which has come with it.
void data_and_end(const Pair& p) {
  char text[64];
  const pthread_t reader = start([&] {
    CHECK_EQ(get(p.a), '1');
    settle();  // both have come by now
    CHECK_EQ(read(p.a, text, sizeof text), 3);
    CHECK_EQ(read(p.a, text, sizeof text), 0);
    CHECK_EQ(read(p.a, text, sizeof text), 0);
  });
  settle();
  put(p.b, '1');
  CHECK_EQ(write(p.b, "234", 3), 3);
  CHECK_EQ(close(p.b), 0);
  join(reader);
  close(p.a);
}

void shut_down(const Pair& p) {
  const pthread_t reader = start([&] {
    char byte;
    CHECK_EQ(read(p.a, &byte, 1), 0);
  });
  settle();
  CHECK_EQ(shutdown(p.a, SHUT_RD), 0);
  join(reader);
  close_both(p);
}

}  // namespace

int main() {
  signal(SIGPIPE, SIG_IGN);
  data_and_end(pipe_pair());
  data_and_end(unix_pair());
  data_and_end(tcp_pair());
  shut_down(unix_pair());
  shut_down(tcp_pair());
  // accept on a socket that stops to listen
  sockaddr_in address;
  const int at = listener(&address);
  const pthread_t acceptor = start([&] { CHECK_ERRNO(accept(at, nullptr, nullptr), EINVAL); });
  settle();
  CHECK_EQ(shutdown(at, SHUT_RD), 0);
  join(acceptor);
  close(at);
  // A reset while a thread reads.
  const Pair p = tcp_pair();
  const pthread_t reader = start([&] {
    char byte;
    CHECK_ERRNO(read(p.a, &byte, 1), ECONNRESET);
  });
  settle();
  const linger now = {1, 0};
  CHECK_EQ(setsockopt(p.b, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
  CHECK_EQ(close(p.b), 0);
  join(reader);
  close(p.a);
  // A writer whose pipe is full, and whose reader goes.
  const Pair full = pipe_pair();
  std::vector<char> much(1 << 20, 'x');
  const pthread_t writer = start([&] {
    const ssize_t n = write(full.b, much.data(), much.size());
    CHECK(n > 0 && n < 1 << 20);  // what was in the pipe
    CHECK_ERRNO(write(full.b, much.data(), much.size()), EPIPE);
  });
  settle();
  CHECK_EQ(close(full.a), 0);
  join(writer);
  close(full.b);
}
