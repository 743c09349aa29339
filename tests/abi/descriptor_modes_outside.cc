// abi: threads=2 descriptors=events timeout=10
// Another process that has the same socket makes it non-blocking, or gives it a time-out: so it is here, too.
#include "descriptor.h"

namespace {

template <class F>
void in_child(F change) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    change();
    _exit(0);
  }
  wait_exit(child, 0);
}

}  // namespace

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : nullptr;
  const Pair p = unix_pair();
  const pthread_t reader = start([&] { CHECK_EQ(get(p.a), 'x'); });
  settle();
  put(p.b, 'x');
  join(reader);
  if (!only || *only == 'n') {
    in_child([&] { CHECK_EQ(fcntl(p.a, F_SETFL, O_NONBLOCK), 0); });
    join(start([&] {
      char byte;
      CHECK_ERRNO(read(p.a, &byte, 1), EAGAIN);
    }));
    in_child([&] { CHECK_EQ(fcntl(p.a, F_SETFL, 0), 0); });
    const pthread_t again = start([&] { CHECK_EQ(get(p.a), 'y'); });
    settle();
    put(p.b, 'y');
    join(again);
  }
  if (!only || *only == 't') {
    in_child([&] {
      const timeval tv = {0, 60'000};
      CHECK_EQ(setsockopt(p.a, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv), 0);
    });
    join(start([&] {
      char byte;
      CHECK_ERRNO(read(p.a, &byte, 1), EAGAIN);
    }));
  }
}
