// abi: threads=60 descriptors=events counters=event_waits:30
// Many threads accept on one socket: each connection goes to one of them, and none is left over.
#include "descriptor.h"

int main() {
  constexpr int kAcceptors = 30, kConnections = 600;
  sockaddr_in address;
  const int at = listener(&address, 256);
  std::atomic<int> accepted{0};
  std::vector<pthread_t> threads;
  for (int i = 0; i < kAcceptors; ++i)
    threads.push_back(start([&] {
      for (;;) {
        const int fd = accept4(at, nullptr, nullptr, SOCK_CLOEXEC);
        CHECK(fd >= 0);
        const char byte = get(fd);
        accepted += byte != 'q';
        close(fd);
        if (byte == 'q') return;
      }
    }));
  settle();
  std::vector<pthread_t> clients;
  for (int c = 0; c < 30; ++c)
    clients.push_back(start([&] {
      for (int i = 0; i < kConnections / 30; ++i) {
        const int fd = connected(address);
        put(fd, 'x');
        char byte;
        CHECK_EQ(read(fd, &byte, 1), 0);
        close(fd);
      }
    }));
  join_all(clients);
  CHECK_EQ(accepted.load(), kConnections);
  for (int i = 0; i < kAcceptors; ++i) {
    const int fd = connected(address);
    put(fd, 'q');
    char byte;
    CHECK_EQ(read(fd, &byte, 1), 0);
    close(fd);
  }
  join_all(threads);
}
