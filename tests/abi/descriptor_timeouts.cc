// abi: threads=4 descriptors=events counters=event_waits:6
// SO_RCVTIMEO and SO_SNDTIMEO, set, changed and taken away while threads use the socket; time-outs of accept, poll and epoll_wait.
#include <sys/epoll.h>

#include "descriptor.h"

namespace {

void limit(int fd, int option, int64_t ns) {
  const timeval tv = {ns / kSecond, ns % kSecond / 1000};
  CHECK_EQ(setsockopt(fd, SOL_SOCKET, option, &tv, sizeof tv), 0);
}

template <class F>
void lasts(int64_t ns, F call) {
  const int64_t begun = now_ns();
  call();
  const int64_t took = now_ns() - begun;
  // The kernel counts some of these times in ticks.
  if (took < ns - 5 * kMs || took > ns + 2 * kSecond * time_factor())
    FAIL("%lld ms instead of %lld", static_cast<long long>(took / kMs), static_cast<long long>(ns / kMs));
}

void receive(const Pair& p) {
  char byte;
  limit(p.a, SO_RCVTIMEO, 60 * kMs);
  lasts(60 * kMs, [&] { CHECK_ERRNO(recv(p.a, &byte, 1, 0), EAGAIN); });
  lasts(60 * kMs, [&] { CHECK_ERRNO(read(p.a, &byte, 1), EAGAIN); });
  limit(p.a, SO_RCVTIMEO, 120 * kMs);
  lasts(120 * kMs, [&] { CHECK_ERRNO(recv(p.a, &byte, 1, 0), EAGAIN); });
  limit(p.a, SO_RCVTIMEO, 0);
  const pthread_t sender = start([&] {
    nap(200 * kMs);
    put(p.b, 'x');
  });
  lasts(190 * kMs, [&] { CHECK_EQ(get(p.a), 'x'); });
  join(sender);
}

}  // namespace

int main() {
  const Pair u = unix_pair(), t = tcp_pair();
  const pthread_t other = start([] { nap(kMs); });  // the runtime is there
  join(other);
  receive(u);
  receive(t);
  std::vector<char> much(1 << 20, 'x');
  limit(u.a, SO_SNDTIMEO, 60 * kMs);
  ssize_t n;
  lasts(60 * kMs, [&] {
    while ((n = send(u.a, much.data(), much.size(), 0)) > 0) {
    }
  });
  CHECK_EQ(errno, EAGAIN);
  sockaddr_in address;
  const int at = listener(&address);
  limit(at, SO_RCVTIMEO, 60 * kMs);
  lasts(60 * kMs, [&] { CHECK_ERRNO(accept(at, nullptr, nullptr), EAGAIN); });
  pollfd asked = {t.a, POLLIN, 0};
  lasts(60 * kMs, [&] { CHECK_EQ(poll(&asked, 1, 60), 0); });
  CHECK_EQ(asked.revents, 0);
  lasts(60 * kMs, [&] { CHECK_EQ(poll(nullptr, 0, 60), 0); });
  const int set = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLIN;
  CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, t.a, &event), 0);
  lasts(60 * kMs, [&] { CHECK_EQ(epoll_wait(set, &event, 1, 60), 0); });
  const pthread_t sender = start([&] {
    nap(100 * kMs);
    put(t.b, 'y');
  });
  lasts(90 * kMs, [&] { CHECK_EQ(epoll_wait(set, &event, 1, 5000), 1); });
  join(sender);
  CHECK_EQ(poll(&asked, 1, -1), 1);
  CHECK_EQ(asked.revents, POLLIN);
  CHECK_EQ(get(t.a), 'y');
}
