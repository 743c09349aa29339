// abi: threads=1 descriptors=events timeout=10
// Reading a socket's queue of errors never waits; nor does reading urgent data that has not come.
#include "descriptor.h"

int main() {
  const int u = socket(AF_INET, SOCK_DGRAM, 0);
  const Pair t = tcp_pair();
  join(start([&] {
    char byte;
    iovec part = {&byte, 1};
    msghdr m = {};
    m.msg_iov = &part, m.msg_iovlen = 1;
    CHECK_ERRNO(recv(t.a, &byte, 1, MSG_OOB), EINVAL);
    CHECK_ERRNO(recvmsg(u, &m, MSG_ERRQUEUE), EAGAIN);
    CHECK_ERRNO(recvmsg(t.a, &m, MSG_ERRQUEUE), EAGAIN);
    CHECK_ERRNO(recv(u, &byte, 1, MSG_ERRQUEUE), EAGAIN);
  }));
}
