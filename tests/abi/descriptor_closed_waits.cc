// abi: threads=3 descriptors=events timeout=10
// A thread waits in accept, poll or epoll_wait while another one closes the descriptor, and the number stands for another file
// next: the call goes on with what it began with.
#include <sys/epoll.h>

#include "descriptor.h"

namespace {

template <class F>
pthread_t begin(std::atomic<bool>* over, F call) {
  *over = false;
  const pthread_t t = start([=] {
    call();
    *over = true;
  });
  settle();
  return t;
}

}  // namespace

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : nullptr;
  std::atomic<bool> over{false};
  if (!only || !strcmp(only, "accept")) {
    sockaddr_in address, other_address;
    const int at = listener(&address);
    const pthread_t t = begin(&over, [=] {
      const int fd = accept(at, nullptr, nullptr);
      CHECK(fd >= 0);
      CHECK_EQ(get(fd), 'o');
      close(fd);
    });
    CHECK_EQ(close(at), 0);
    const int other = listener(&other_address);
    CHECK_EQ(other, at);
    const int wrong = connected(other_address);
    put(wrong, 'n');
    settle();
    CHECK(!over);
    const int right = connected(address);
    put(right, 'o');
    join(t);
    close(wrong), close(right), close(other);
  }
  if (!only || !strcmp(only, "poll")) {
    const Pair p = unix_pair();
    const pthread_t t = begin(&over, [=] {
      pollfd asked = {p.a, POLLIN, 0};
      CHECK_EQ(poll(&asked, 1, 5000), 1);
      CHECK_EQ(asked.revents, POLLIN);
    });
    const int kept = dup(p.a);
    CHECK_EQ(close(p.a), 0);
    settle();
    CHECK(!over);
    const Pair other = unix_pair();
    CHECK_EQ(other.a, p.a);
    put(other.b, 'n');
    settle();
    CHECK(!over);
    put(p.b, 'o');
    join(t);
    close(kept), close(p.b), close_both(other);
  }
  if (!only || !strcmp(only, "epoll")) {
    const Pair p = unix_pair();
    const int set = epoll_create1(0);
    epoll_event event = {};
    event.events = EPOLLIN;
    CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, p.a, &event), 0);
    const pthread_t t = begin(&over, [=] {
      epoll_event got;
      CHECK_EQ(epoll_wait(set, &got, 1, 100), 0);
    });
    CHECK_EQ(close(set), 0);
    join(t);
  }
}
