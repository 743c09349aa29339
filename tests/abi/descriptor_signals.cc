// abi: threads=2 descriptors=events counters=event_waits:8
// A signal ends a wait for a descriptor with EINTR, or has it go on with SA_RESTART, after the handler has itself waited for
// another descriptor; cancellation ends it.
#include <signal.h>

#include "descriptor.h"

namespace {

Pair g_inner;
std::atomic<int> g_handled{0};

void handler(int) {
  put(g_inner.b, 'i');
  CHECK_EQ(get(g_inner.a), 'i');
  pollfd asked = {g_inner.a, POLLIN, 0};
  CHECK_EQ(poll(&asked, 1, 5), 0);
  ++g_handled;
}

void interrupted(const Pair& p, bool restart) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = restart ? SA_RESTART : 0;
  CHECK_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  const int before = g_handled;
  std::atomic<bool> over{false};
  const pthread_t reader = start([&] {
    char byte = 0;
    if (restart) {
      CHECK_EQ(read(p.a, &byte, 1), 1);
      CHECK_EQ(byte, 'x');
    } else {
      CHECK_ERRNO(read(p.a, &byte, 1), EINTR);
    }
    over = true;
  });
  settle();
  CHECK_EQ(pthread_kill(reader, SIGUSR1), 0);
  while (g_handled == before) nap(kMs);
  settle();
  CHECK_EQ(over.load(), !restart);
  if (restart) put(p.b, 'x');
  join(reader);
  close_both(p);
}

}  // namespace

int main() {
  g_inner = unix_pair();
  for (const bool restart : {false, true}) {
    interrupted(unix_pair(), restart);
    interrupted(tcp_pair(), restart);
    interrupted(pipe_pair(), restart);
  }
  const Pair p = tcp_pair();
  bool cleaned = false;
  const pthread_t reader = start([&] {
    struct Note {
      bool* to;
      ~Note() { *to = true; }
    } note{&cleaned};
    get(p.a);
    FAIL("it was to be cancelled");
  });
  settle();
  CHECK_EQ(pthread_cancel(reader), 0);
  CHECK(join(reader) == PTHREAD_CANCELED);
  CHECK(cleaned);
}
