// abi: threads=200 descriptors=events counters=kernel_threads_peak:1-60 timeout=20
// Hundreds of threads wait to accept: bursts of connections leave few of them in the kernel.
#include "descriptor.h"

int main() {
  sockaddr_in address;
  const int at = listener(&address, 1000);
  std::atomic<int> accepted{0};
  std::vector<pthread_t> threads;
  for (int i = 0; i < 200; ++i)
    threads.push_back(start([&] {
      int fd;
      while ((fd = accept(at, nullptr, nullptr)) >= 0) {
        ++accepted;
        close(fd);
      }
      CHECK_EQ(errno, EINVAL);
    }));
  settle();
  for (int round = 1; round <= 20; ++round) {
    for (int i = 0; i < 20; ++i) close(connected(address));
    while (accepted < round * 20) nap(kMs);
  }
  CHECK_EQ(shutdown(at, SHUT_RD), 0);
  join_all(threads);
}
