// abi: threads=6 timeout=60
// Two threads become another user and root again, over and over, each by the functions of the C library, which act on the
// process one after the other (nptl(7)): when all is done the last word counts everywhere.
#include "credentials.h"

int main() {
  need_root();
  Crowd crowd(1);
  std::vector<pthread_t> threads;
  for (unsigned n = 0; n < 2; ++n)
    threads.push_back(start([] {
      for (int i = 0; i < 30; ++i) {
        CHECK_EQ(setresuid(static_cast<uid_t>(-1), 1000, static_cast<uid_t>(-1)), 0);
        CHECK_EQ(setresuid(static_cast<uid_t>(-1), 0, static_cast<uid_t>(-1)), 0);
      }
    }));
  join_all(threads);
  check_all(0, 0, 0, 0, 0, 0);
  CHECK_EQ(seteuid(1002), 0);
  check_all(0, 1002, 0, 0, 0, 0);
  crowd.stop();
  CHECK_EQ(seteuid(0), 0);
}
