// abi: threads=20 descriptors=events timeout=20
// shutdown by a thread of the program while others wait in each kind of call; the other direction goes on.
#include <sys/epoll.h>
#include <sys/un.h>

#include "descriptor.h"

namespace {

void own_end(const Pair& p, int how) {
  std::vector<pthread_t> threads;
  char text[8];
  iovec part = {text, sizeof text};
  threads.push_back(start([&] { CHECK_EQ(read(p.a, text, sizeof text), 0); }));
  threads.push_back(start([&] { CHECK_EQ(readv(p.a, &part, 1), 0); }));
  threads.push_back(start([&] { CHECK_EQ(recv(p.a, text, sizeof text, MSG_WAITALL), 0); }));
  threads.push_back(start([&] { CHECK_EQ(recv(p.a, text, sizeof text, MSG_PEEK), 0); }));
  threads.push_back(start([&] {
    msghdr m = {};
    m.msg_iov = &part, m.msg_iovlen = 1;
    CHECK_EQ(recvmsg(p.a, &m, 0), 0);
  }));
  threads.push_back(start([&] {
    pollfd asked = {p.a, POLLIN | POLLRDHUP, 0};
    CHECK_EQ(poll(&asked, 1, -1), 1);
    CHECK((asked.revents & (POLLIN | POLLRDHUP)) == (POLLIN | POLLRDHUP));
  }));
  threads.push_back(start([&] {
    const int set = epoll_create1(0);
    epoll_event event = {};
    event.events = EPOLLRDHUP;
    CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, p.a, &event), 0);
    CHECK_EQ(epoll_wait(set, &event, 1, -1), 1);
    close(set);
  }));
  settle();
  CHECK_EQ(shutdown(p.a, how), 0);
  join_all(threads);
  if (how == SHUT_RD) {
    put(p.a, 'x');
    CHECK_EQ(get(p.b), 'x');
  }
  close_both(p);
}

// The peer says that no more will come, and is itself answered for as long as one likes.
void peers_end(const Pair& p) {
  const pthread_t server = start([&] {
    size_t all = 0;
    char text[64];
    for (ssize_t n; (n = read(p.a, text, sizeof text)) != 0; all += static_cast<size_t>(n)) CHECK(n > 0);
    CHECK_EQ(all, 1000);
    const std::vector<char> answer(1 << 20, 'a');
    CHECK_EQ(write(p.a, answer.data(), answer.size()), answer.size());
    CHECK_EQ(shutdown(p.a, SHUT_WR), 0);
    pollfd asked = {p.a, POLLIN, 0};
    CHECK_EQ(poll(&asked, 1, -1), 1);
    CHECK(asked.revents & POLLHUP);
  });
  for (int i = 0; i < 10; ++i) {
    char text[100] = {};
    CHECK_EQ(write(p.b, text, sizeof text), 100);
    if (i % 4 == 0) nap(kMs);
  }
  CHECK_EQ(shutdown(p.b, SHUT_WR), 0);
  settle();
  size_t all = 0;
  std::vector<char> text(100'000);
  for (ssize_t n; (n = read(p.b, text.data(), text.size())) != 0; all += static_cast<size_t>(n)) CHECK(n > 0);
  CHECK_EQ(all, 1 << 20);
  join(server);
  close_both(p);
}

}  // namespace

int main() {
  own_end(tcp_pair(), SHUT_RD);
  own_end(unix_pair(), SHUT_RD);
  own_end(tcp_pair(), SHUT_RDWR);
  own_end(unix_pair(), SHUT_RDWR);
  peers_end(tcp_pair());
  peers_end(unix_pair());
  // A Unix socket that stops to listen.
  const int at = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  CHECK_EQ(bind(at, reinterpret_cast<sockaddr*>(&address), sizeof address.sun_family), 0);
  CHECK_EQ(listen(at, 5), 0);
  std::vector<pthread_t> acceptors;
  for (int i = 0; i < 3; ++i)
    acceptors.push_back(start([&] { CHECK_ERRNO(accept(at, nullptr, nullptr), EINVAL); }));
  settle();
  CHECK_EQ(shutdown(at, SHUT_RDWR), 0);
  join_all(acceptors);
}
