// abi: threads=90 timeout=60
// A hundred threads, of which some end and others begin meanwhile; every one sees each change of the effective user.
#include "credentials.h"

int main() {
  need_root();
  std::atomic<bool> stop{false};
  std::vector<pthread_t> threads;
  for (int i = 0; i < 90; ++i)
    threads.push_back(start([&, i] {
      while (!stop) {
        if (i % 3 == 0) burn(kMs / 50);
        usleep(2000);
      }
      CHECK_EQ(geteuid(), 1004);
      CHECK_EQ(getegid(), 2004);
    }));
  threads.push_back(start([&] {
    while (!stop) join(start([] {}));
  }));
  for (unsigned i = 0; i < 5; ++i) {
    CHECK_EQ(seteuid(0), 0);
    CHECK_EQ(setegid(2000 + i), 0);
    CHECK_EQ(seteuid(1000 + i), 0);
    check_all(0, 1000 + i, 0, 0, 2000 + i, 0);
  }
  stop = true;
  join_all(threads);
  CHECK_EQ(seteuid(0), 0);
}
