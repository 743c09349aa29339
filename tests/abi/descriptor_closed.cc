// abi: threads=7 descriptors=events
// A thread reads while another one closes the descriptor: the call goes on with what the number stood for, whoever has the
// number next. So does one whose number another file takes by dup2.
#include "descriptor.h"

namespace {

void closed_while_read(const Pair& p, bool by_dup) {
  std::atomic<bool> over{false};
  char got = 0;
  const pthread_t reader = start([&] {
    got = get(p.a);
    over = true;
  });
  settle();
  const Pair other = unix_pair();
  if (by_dup) {
    CHECK_EQ(dup2(other.a, p.a), p.a);
  } else {
    CHECK_EQ(close(p.a), 0);
    CHECK_EQ(fcntl(other.a, F_DUPFD, p.a), p.a);
  }
  put(other.b, 'n');  // for whoever has the number now
  settle();
  CHECK(!over);
  put(p.b, 'o');
  join(reader);
  CHECK_EQ(got, 'o');
  CHECK_EQ(get(p.a), 'n');
  close(p.a);
  close(p.b);
  close_both(other);
}

}  // namespace

int main() {
  for (const bool by_dup : {false, true}) {
    closed_while_read(unix_pair(), by_dup);
    closed_while_read(pipe_pair(), by_dup);
    closed_while_read(tcp_pair(), by_dup);
  }
  // The other end is gone with the reader's call: nobody else holds it.
  const Pair p = unix_pair();
  const pthread_t reader = start([&] { CHECK_EQ(get(p.a), 'x'); });
  settle();
  CHECK_EQ(close(p.a), 0);
  put(p.b, 'x');
  join(reader);
  char byte;
  CHECK_EQ(recv(p.b, &byte, 1, 0), 0);
  close(p.b);
}
