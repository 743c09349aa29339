// abi: threads=1
// daemon(3) in a process with threads: its first process is gone at once, with status 0, the second one is the leader of a
// session, has the calling thread alone and can make threads; it does not end with its parent's session.
#include "process.h"

int main() {
  join(start([] {}));
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  wait_exit(start_child([&] {
              new Crowd;
              const pid_t before = getpid();
              join(start([&] {
                CHECK_EQ(daemon(1, 1), 0);
                alarm(15);
                CHECK(getpid() != before && getsid(0) == getpid());
                CHECK_EQ(kernel_threads(), 1);
                use_threads();
                std::atomic<bool> done{false};
                install(SIGUSR1, [](int) {});
                const pthread_t worker = start([&] {
                  nap(kMs);
                  done = true;
                });
                pthread_kill(worker, SIGUSR1);
                join(worker);
                CHECK_EQ(write(ends[1], done ? "y" : "n", 1), 1);
                exit(0);
              }));
            }),
            0);
  close(ends[1]);
  char byte = 0;
  CHECK_EQ(read(ends[0], &byte, 1), 1);
  CHECK_EQ(byte, 'y');
  CHECK_EQ(read(ends[0], &byte, 1), 0);  // and it has ended
}
