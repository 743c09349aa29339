// abi: threads=2 descriptors=events
// A child of a process whose threads wait for descriptors waits for the same ones itself, with threads of its own; passing
// descriptors between processes; the parent's go on.
#include "descriptor.h"

int main() {
  const Pair mine = unix_pair(), children = unix_pair(), shared = pipe_pair();
  const pthread_t reader = start([&] { CHECK_EQ(get(mine.a), 'm'); });
  const pthread_t waiting_too = start([&] { CHECK_EQ(get(children.a), 'p'); });
  settle();
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    const pthread_t own = start([&] { CHECK_EQ(get(shared.a), 's'); });
    const pthread_t receiver = start([&] {
      const int fd = passed(children.b);
      CHECK_EQ(get(fd), 'd');
      close(fd);
    });
    join(own);
    join(receiver);
    _exit(0);
  }
  settle();
  put(shared.b, 's');
  const Pair data = tcp_pair();
  pass(children.a, data.a);
  settle();
  put(data.b, 'd');
  int status;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  put(mine.b, 'm');
  put(children.b, 'p');
  join(reader);
  join(waiting_too);
}
