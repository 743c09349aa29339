// abi: threads=6
// execve(2): "all threads other than the calling thread are destroyed", whatever they are doing: making threads, forking,
// executing a program themselves (one of them wins), handling signals; the process has the executing thread's next program.
#include "process.h"

namespace {

void run(int kind) {
  const char* words[] = {"sh", "-c", "exit 61", nullptr};
  const auto execute = [&] {
    execv("/bin/sh", const_cast<char**>(words));
    _exit(99);
  };
  wait_exit(start_child([&] {
              const pid_t me = getpid();
              for (int i = 0; i < 2; ++i)
                start([&] {
                  for (;;) {
                    // Refused once the exec has begun.
                    pthread_t one;
                    if (kind == 0 && !pthread_create(
                                         &one, nullptr, [](void* p) { return p; }, nullptr))
                      join(one);
                    if (kind == 1) wait_exit(start_child([] {}), 0);
                    if (kind == 2) {
                      nap(kMs);
                      execute();
                    }
                    if (kind == 3) kill(me, SIGUSR1);
                  }
                });
              start([] {
                for (;;) burn(kMs);
              });
              nap(2 * kMs);
              execute();
            }),
            61);
}

}  // namespace

int main() {
  Crowd crowd;
  install(
      SIGUSR1, [](int) {}, SA_RESTART);
  join(start([] {
    for (int round = 0; round < 2; ++round)
      for (int kind : {0, 1, 2}) run(kind);
  }));
  crowd.end();
}
