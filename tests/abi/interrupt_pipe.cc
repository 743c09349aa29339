// abi: threads=10
// signal(7): read and write on pipes, their vector forms and splice are restarted after a handler with SA_RESTART, end
// with EINTR without it, and do not notice signals that are ignored.
#include <fcntl.h>
#include <sys/uio.h>

#include "interrupt.h"

static int in[2], out[2], drain[2];
alignas(4096) static char page[4096];

static void fill(int fd) {
  CHECK_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
  while (write(fd, page, sizeof page) > 0) {
  }
  CHECK_EQ(errno, EAGAIN);
  CHECK_EQ(fcntl(fd, F_SETFL, 0), 0);
}

static void feed() { CHECK_EQ(write(in[1], "x", 1), 1); }
static void take_page() {
  char taken[4096];
  CHECK_EQ(read(out[0], taken, sizeof taken), 4096);
}

// tee leaves the byte where it is.
static long tee_and_take() {
  const long result = with_errno(tee(in[0], drain[1], 1, 0));
  char byte;
  if (result == 1) CHECK_EQ(read(in[0], &byte, 1), 1);
  return result;
}

int main() {
  CHECK_EQ(pipe(in) | pipe(out) | pipe(drain), 0);
  fill(out[1]);
  char byte;
  iovec one = {&byte, 1}, whole = {page, sizeof page};
  try_signals({
      {"read", [&] { return with_errno(read(in[0], &byte, 1)); }, feed, 1, Restart::yes},
      {"readv", [&] { return with_errno(readv(in[0], &one, 1)); }, feed, 1, Restart::yes},
      {"splice", [&] { return with_errno(splice(in[0], nullptr, drain[1], nullptr, 1, 0)); }, feed, 1,
       Restart::yes},
      {"tee", tee_and_take, feed, 1, Restart::yes},
      {"write", [&] { return with_errno(write(out[1], page, sizeof page)); }, take_page, 4096, Restart::yes},
      {"writev", [&] { return with_errno(writev(out[1], &whole, 1)); }, take_page, 4096, Restart::yes},
      {"vmsplice", [&] { return with_errno(vmsplice(out[1], &whole, 1, 0)); }, take_page, 4096, Restart::yes},
  });
}
