// abi: threads=3 descriptors=events timeout=10
// A read that ends where its buffer does, at a page that is not there, has not emptied the socket: the next one finds the rest.
#include <sys/mman.h>

#include "descriptor.h"

int main() {
  constexpr size_t kBytes = 30'000, kRoom = 1 << 20;
  const Pair p = tcp_pair(), other = unix_pair();
  auto* room = static_cast<char*>(
      mmap(nullptr, 2 * kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(room != MAP_FAILED);
  CHECK_EQ(munmap(room + kRoom, kRoom), 0);
  // One that waits: somebody looks for events all the time.
  const pthread_t waits = start([&] { CHECK_EQ(get(other.a), 'x'); });
  const pthread_t first = start([&] { CHECK_EQ(get(p.a), 'x'); });
  settle();
  put(p.b, 'x');
  join(first);
  const std::vector<char> text(kBytes, 'y');
  for (size_t i = 0; i < 30; ++i) {
    CHECK_EQ(write(p.b, &text[i * kBytes / 30], kBytes / 30), kBytes / 30);
    nap(kMs);
  }
  settle();
  settle();
  join(start([&] {
    size_t got = 0;
    for (int i = 0; i < 10 && got == 0; ++i) {
      const ssize_t n = read(p.a, room + kRoom - 20'000, kBytes);  // more than there is room for
      CHECK(n > 0 || errno == EFAULT);
      if (n > 0) got += static_cast<size_t>(n);
    }
    if (got == 0) skip("no part is given");
    while (got < kBytes) {
      const ssize_t n = read(p.a, room, kBytes);
      CHECK(n > 0);
      got += static_cast<size_t>(n);
    }
  }));
  put(other.b, 'x');
  join(waits);
}
