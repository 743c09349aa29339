// abi: threads=7 descriptors=events timeout=10
// What accept refuses it refuses at once, whether or not somebody connects: what is no listening socket, unknown flags, no free number.
#include <sys/resource.h>

#include "descriptor.h"

namespace {

void refused(int fd, int error) {
  const pthread_t acceptor = start([=] { CHECK_ERRNO(accept(fd, nullptr, nullptr), error); });
  join(acceptor);
}

}  // namespace

int main() {
  const Pair u = unix_pair(), t = tcp_pair(), p = pipe_pair();
  const int datagrams = socket(AF_INET, SOCK_DGRAM, 0), fresh = socket(AF_INET, SOCK_STREAM, 0);
  refused(fresh, EINVAL);
  refused(p.a, ENOTSOCK);
  refused(u.a, EINVAL);
  refused(t.a, EINVAL);
  refused(datagrams, EOPNOTSUPP);
  sockaddr_in address;
  const int at = listener(&address);
  join(start([&] { CHECK_ERRNO(accept4(at, nullptr, nullptr, 1 << 30), EINVAL); }));
  // No free number.
  rlimit limit;
  CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = static_cast<rlim_t>(at) + 1;
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  while (dup(at) >= 0) {
  }
  refused(at, EMFILE);
  close(p.a);  // for what is written at the end
}
