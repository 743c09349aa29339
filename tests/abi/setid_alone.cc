// abi: threads=4 bound=0 timeout=60
// A thread that is alone when it makes the raw calls, as programs do that then start their threads, gives its ids to all
// that come.
#include "credentials.h"

int main() {
  need_root();
  const RootsFile file;
  join(start([] {}));
  CHECK_EQ(syscall(SYS_setresgid, kNobody, kNobody, kNobody), 0);
  CHECK_EQ(syscall(SYS_setresuid, kNobody, kNobody, kNobody), 0);
  check_all(kNobody, kNobody, kNobody, kNobody, kNobody, kNobody);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 3; ++i)
    threads.push_back(start([&] {
      CHECK_EQ(getuid(), kNobody);
      CHECK(!may_read(file.path()));
    }));
  join_all(threads);
}
