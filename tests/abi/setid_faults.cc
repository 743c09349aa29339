// abi: threads=6 timeout=60
// Threads that wait in page faults, and one in a call that no table knows, are changed like any; what they do next is done
// with the new ids.
#include "credentials.h"
#include "unseen.h"

int main() {
  need_root();
  const RootsFile file;
  constexpr size_t kPages = 4;
  SlowPages pages(kPages);
  int fds[2];
  CHECK_EQ(pipe(fds), 0);
  auto made = made_syscall();
  std::vector<pthread_t> threads;
  for (size_t i = 0; i < kPages; ++i)
    threads.push_back(start([&, i] {
      CHECK_EQ(*pages.page(i), 7);
      CHECK(!may_read(file.path()));
    }));
  threads.push_back(start([&] {
    char byte;
    while (made(SYS_read, fds[0], reinterpret_cast<long>(&byte), 1) == -EINTR) {
    }
    CHECK(!may_read(file.path()));
  }));
  bool seen[kPages] = {};
  for (size_t n = 0; n < kPages;) {
    const long i = pages.waiting();
    if (i < 0)
      nap(kMs / 5);
    else if (!seen[i])
      seen[i] = true, ++n;
  }
  join(start([] {}));
  settle();
  CHECK_EQ(setuid(kNobody), 0);
  check_user(kNobody);
  for (size_t i = 0; i < kPages; ++i) pages.serve(i, 7);
  close(fds[1]);
  join_all(threads);
}
