// abi: threads=4 descriptors=events timeout=40
// One descriptor never runs dry: threads that pass it on among themselves do not starve a slow exchange over others.
#include "descriptor.h"

namespace {

void beside(const Pair& flood) {
  std::atomic<bool> over{false};
  const pthread_t reader = start([&] {
    std::vector<char> text(4096);
    ssize_t n;
    while ((n = read(flood.a, text.data(), text.size())) > 0) {
    }
    CHECK_EQ(n, 0);
  });
  const pthread_t writer = start([&] {
    const std::vector<char> text(4096);
    while (!over) CHECK(write(flood.b, text.data(), text.size()) > 0);
    CHECK_EQ(close(flood.b), 0);
  });
  const Pair there = unix_pair(), back = tcp_pair();
  const pthread_t other = start([&] {
    for (int i = 0; i < 40; ++i) put(back.b, get(there.a));
  });
  int late = 0;
  for (int i = 0; i < 40; ++i) {
    nap(2 * kMs);
    const int64_t begun = now_ns();
    put(there.b, 'x');
    get(back.a);
    late += now_ns() - begun > 100 * kMs * time_factor();
  }
  if (late > 6) FAIL("%d of 40 answers took more than 100 ms", late);
  over = true;
  join(writer), join(reader), join(other);
  close(flood.a), close_both(there), close_both(back);
}

}  // namespace

int main() {
  beside(unix_pair());
  beside(tcp_pair());
  beside(pipe_pair());
}
