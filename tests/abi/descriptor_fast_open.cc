// abi: threads=2 descriptors=events timeout=10
// A write that connects: MSG_FASTOPEN, TCP_FASTOPEN_CONNECT. It answers when there is a connection.
#include "descriptor.h"

int main() {
  sockaddr_in address;
  const int at = listener(&address);
  for (const bool by_option : {false, true}) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    join(start([&] {
      if (by_option) {
        const int on = 1;
        if (setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on) != 0)
          skip("no TCP_FASTOPEN_CONNECT");
        CHECK_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        CHECK_EQ(write(fd, "x", 1), 1);
      } else {
        const ssize_t n =
            sendto(fd, "x", 1, MSG_FASTOPEN, reinterpret_cast<sockaddr*>(&address), sizeof address);
        if (n < 0 && errno == EOPNOTSUPP) skip("no TCP fast open");
        CHECK_EQ(n, 1);
      }
    }));
    const int there = accept(at, nullptr, nullptr);
    CHECK(there >= 0);
    CHECK_EQ(get(there), 'x');
    close(there);
    close(fd);
  }
}
