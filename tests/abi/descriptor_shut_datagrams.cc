// abi: threads=8 descriptors=events timeout=10
// shutdown ends receives that wait on datagram sockets: with 0, connected or not.
#include "descriptor.h"

namespace {

void ends(const char* what, int fd, int answer) {
  std::vector<pthread_t> threads;
  for (int i = 0; i < 2; ++i)
    threads.push_back(start([=] {
      char text[8];
      iovec part = {text, sizeof text};
      msghdr m = {};
      m.msg_iov = &part, m.msg_iovlen = 1;
      const ssize_t n = i ? recvmsg(fd, &m, 0) : recvfrom(fd, text, sizeof text, 0, nullptr, nullptr);
      if (n != 0) FAIL("%s: %zd (errno %d)", what, n, errno);
    }));
  settle();
  errno = 0;
  CHECK_EQ(shutdown(fd, SHUT_RD), answer);
  if (answer) CHECK_EQ(errno, ENOTCONN);
  join_all(threads);
}

}  // namespace

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : nullptr;
  if (!only || *only == 'u') ends("Unix datagrams", unix_pair(SOCK_DGRAM).a, 0);
  if (!only || *only == 'q') ends("Unix packets", unix_pair(SOCK_SEQPACKET).a, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int plain = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK_EQ(bind(plain, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  if (!only || *only == 'b') ends("UDP", plain, -1);
  socklen_t length = sizeof address;
  CHECK_EQ(getsockname(plain, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const int bound = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK_EQ(connect(bound, reinterpret_cast<sockaddr*>(&address), length), 0);
  if (!only || *only == 'c') ends("UDP, connected", bound, 0);
}
