// abi: threads=2 unseen=1
// A thread waits for a page that another thread of the program brings.
#include "unseen.h"

int main() {
  constexpr size_t kPages = 64;
  SlowPages pages(kPages);
  std::atomic<bool> stop{false};
  pthread_t server = start([&] {
    while (!stop) {
      const long i = pages.waiting();
      if (i < 0) {
        nap(kMs / 10);
        continue;
      }
      burn(kMs / 5);
      pages.serve(static_cast<size_t>(i), static_cast<char>(i + 1));
    }
  });
  pthread_t reader = start([&] {
    for (size_t i = 0; i < kPages; ++i) CHECK_EQ(*pages.page(i), static_cast<char>(i + 1));
  });
  join(reader);
  stop = true;
  join(server);
}
