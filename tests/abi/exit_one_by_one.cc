// abi: threads=1
// exit(2), the system call, ends one thread. A process whose threads have all ended so has the status of the last one (of the
// first one before Linux 6.2); those that have been joined before are no more. With pthread_exit it is 0 (pthread_exit(3)).
#include "process.h"

namespace {

template <class F>
void expect(int status, F body) {
  wait_exit(start_child([&] {
              alarm(15);
              body();
              for (;;) pause();
            }),
            status);
}

void end_alone(int status) { syscall(SYS_exit, status); }

}  // namespace

int main() {
  join(start([] {}));
  for (int round = 0; round < 3; ++round) {
    expect(7, [] {
      start([] { end_alone(6); });
      settle();
      end_alone(7);
    });
    // Threads that have been joined are no more.
    expect(23, [] {
      use_threads(3);
      end_alone(23);
    });
    expect(8, [] {
      for (int i = 0; i < 3; ++i)
        start([i] {
          burn(i * kMs);
          end_alone(8);
        });
      end_alone(8);
    });
    expect(0, [] {
      start([] { nap(kMs); });
      pthread_exit(reinterpret_cast<void*>(4));
    });
  }
}
