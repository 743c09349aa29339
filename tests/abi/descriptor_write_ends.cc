// abi: threads=3 descriptors=events timeout=10
// A write that is told of half of what it was to write when its connection ends: there is no signal then, and the reason is
// there for the next one. (A reset, ECONNRESET, is not: docs/ARCHITECTURE.md.)
#include <signal.h>

#include "descriptor.h"

namespace {

std::atomic<int> g_signals{0};

template <class F>
void ends(const Pair& p, F end, int then) {
  g_signals = 0;
  const pthread_t writer = start([&] {
    const std::vector<char> much(16 << 20, 'x');
    const ssize_t n = write(p.a, much.data(), much.size());
    CHECK(n > 0 && n < static_cast<ssize_t>(much.size()));
    CHECK_EQ(g_signals.load(), 0);
    CHECK_ERRNO(write(p.a, "x", 1), then);
    CHECK_EQ(g_signals.load(), then == EPIPE);
    CHECK_ERRNO(write(p.a, "x", 1), EPIPE);
    CHECK_EQ(g_signals.load(), 1 + (then == EPIPE));
    CHECK_ERRNO(send(p.a, "x", 1, MSG_NOSIGNAL), EPIPE);
    CHECK_EQ(g_signals.load(), 1 + (then == EPIPE));
  });
  settle();
  settle();
  end();
  join(writer);
}

}  // namespace

int main(int argc, char** argv) {
  install(SIGPIPE, [](int) { ++g_signals; });
  const char* only = argc > 1 ? argv[1] : nullptr;
  if (!only || *only == 's') {
    const Pair t = tcp_pair();
    ends(
        t, [&] { CHECK_EQ(shutdown(t.a, SHUT_WR), 0); }, EPIPE);
    close_both(t);
  }
  if (!only || *only == 'u') {
    const Pair u = unix_pair();
    ends(
        u, [&] { CHECK_EQ(shutdown(u.a, SHUT_WR), 0); }, EPIPE);
    close_both(u);
  }
  if (!only || *only == 'w') {
    // One that has written nothing yet.
    const Pair w = unix_pair();
    CHECK_EQ(fcntl(w.a, F_SETFL, O_NONBLOCK), 0);
    while (write(w.a, "x", 1) == 1) {
    }
    CHECK_EQ(fcntl(w.a, F_SETFL, 0), 0);
    g_signals = 0;
    const pthread_t writer = start([&] {
      CHECK_ERRNO(write(w.a, "x", 1), EPIPE);
      CHECK_EQ(g_signals.load(), 0);
      CHECK_ERRNO(write(w.a, "x", 1), EPIPE);
      CHECK_EQ(g_signals.load(), 1);
    });
    settle();
    CHECK_EQ(shutdown(w.a, SHUT_WR), 0);
    join(writer);
    close_both(w);
  }
}
