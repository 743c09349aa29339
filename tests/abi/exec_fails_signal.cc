// abi: threads=1
#include "abi.h"
using namespace upcall::test;
static std::atomic<int> got{0};
int main() {
  install(
      SIGUSR1, [](int) { ++got; }, SA_RESTART);
  auto w = start([&] { nap(kMs); });
  join(w);
  pid_t me = getpid();
  pid_t c = fork();
  if (!c) {
    int64_t e = now_ns() + kSecond;
    while (now_ns() < e) {
      kill(me, SIGUSR1);
      usleep(10);
    }
    _exit(0);
  }
  char* av[] = {const_cast<char*>("x"), nullptr};
  const int64_t end = now_ns() + kSecond;
  while (now_ns() < end) execv("/nonexistent/x", av);
  while (waitpid(c, nullptr, 0) < 0) {
  }
}
