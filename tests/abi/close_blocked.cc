// abi: threads=3
// End of file and shutdown end reads that are blocked; a closed reader ends a blocked write with EPIPE and SIGPIPE
// on the writing thread.
#include <sys/socket.h>

#include "abi.h"

static std::atomic<pthread_t> got_sigpipe{};

int main() {
  install(SIGPIPE, [](int) { got_sigpipe = pthread_self(); });
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  char byte;
  const pthread_t at_end = start([&] { CHECK_EQ(read(ends[0], &byte, 1), 0); });
  settle();
  close(ends[1]);
  join(at_end);

  int pair[2];
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const pthread_t receiver = start([&] { CHECK_EQ(recv(pair[0], &byte, 1, 0), 0); });
  settle();
  CHECK_EQ(shutdown(pair[0], SHUT_RDWR), 0);
  join(receiver);

  int full[2];
  CHECK_EQ(pipe(full), 0);
  const pthread_t writer = start([&] {
    const std::vector<char> data(1 << 20);
    const ssize_t written = write(full[1], data.data(), data.size());
    // The part that fitted is reported first; the next write says EPIPE.
    CHECK(written == 65536 || (written == -1 && errno == EPIPE));
    CHECK_ERRNO(write(full[1], "x", 1), EPIPE);
    CHECK(pthread_equal(got_sigpipe, pthread_self()) != 0);
  });
  settle();
  close(full[0]);
  join(writer);
}
