// abi: threads=12 descriptors=events timeout=20
// Flags of single calls, beside threads that wait: MSG_PEEK, MSG_TRUNC, MSG_WAITALL, datagrams of no bytes, UDP.
#include "descriptor.h"

namespace {

Pair udp_pair() {
  Pair p;
  sockaddr_in address[2] = {};
  int fd[2];
  for (int i = 0; i < 2; ++i) {
    fd[i] = socket(AF_INET, SOCK_DGRAM, 0);
    address[i].sin_family = AF_INET;
    address[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address[i];
    CHECK_EQ(bind(fd[i], reinterpret_cast<sockaddr*>(&address[i]), length), 0);
    CHECK_EQ(getsockname(fd[i], reinterpret_cast<sockaddr*>(&address[i]), &length), 0);
  }
  for (int i = 0; i < 2; ++i)
    CHECK_EQ(connect(fd[i], reinterpret_cast<sockaddr*>(&address[1 - i]), sizeof *address), 0);
  p.a = fd[0], p.b = fd[1];
  return p;
}

// Those who only look all see it, who takes it has it.
void peek(const Pair& p, int lookers) {
  std::vector<pthread_t> threads;
  std::atomic<int> looked{0};
  for (int i = 0; i < lookers; ++i)
    threads.push_back(start([&] {
      char text[4] = {};
      CHECK_EQ(recv(p.a, text, sizeof text, MSG_PEEK), 3);
      CHECK_EQ(memcmp(text, "abc", 3), 0);
      ++looked;
    }));
  settle();
  CHECK_EQ(send(p.b, "abc", 3, 0), 3);
  join_all(threads);
  CHECK_EQ(looked.load(), lookers);
  char text[4];
  CHECK_EQ(read(p.a, text, sizeof text), 3);
  const pthread_t more = start([&] { CHECK_EQ(recv(p.a, text, sizeof text, MSG_PEEK), 1); });
  settle();
  put(p.b, 'd');
  join(more);
  CHECK_EQ(get(p.a), 'd');
}

void datagrams(const Pair& p) {
  char small[4];
  const pthread_t cut = start([&] { CHECK_EQ(recv(p.a, small, sizeof small, MSG_TRUNC), 100); });
  settle();
  const char text[100] = "cut";
  CHECK_EQ(send(p.b, text, sizeof text, 0), sizeof text);
  join(cut);
  const pthread_t told = start([&] {
    iovec part = {small, sizeof small};
    msghdr m = {};
    m.msg_iov = &part, m.msg_iovlen = 1;
    CHECK_EQ(recvmsg(p.a, &m, 0), 4);
    CHECK(m.msg_flags & MSG_TRUNC);
  });
  settle();
  CHECK_EQ(send(p.b, text, sizeof text, 0), sizeof text);
  join(told);
  // Nothing at all is a message, too; reading nothing takes one, but read of nothing does not.
  const pthread_t none = start([&] { CHECK_EQ(read(p.a, small, sizeof small), 0); });
  settle();
  CHECK_EQ(send(p.b, text, 0, 0), 0);
  join(none);
  const pthread_t takes = start([&] { CHECK_EQ(recv(p.a, small, 0, 0), 0); });
  settle();
  CHECK_EQ(send(p.b, "1", 1, 0), 1);
  join(takes);
  join(start([&] { CHECK_EQ(read(p.a, small, 0), 0); }));
  // MSG_WAITALL does not make one message of two.
  const pthread_t one = start([&] { CHECK_EQ(recv(p.a, small, sizeof small, MSG_WAITALL), 2); });
  settle();
  CHECK_EQ(send(p.b, "ab", 2, 0), 2);
  CHECK_EQ(send(p.b, "cd", 2, 0), 2);
  join(one);
  CHECK_EQ(recv(p.a, small, sizeof small, 0), 2);
}

void streams(const Pair& p) {
  char text[9] = {};
  const pthread_t whole = start([&] { CHECK_EQ(recv(p.a, text, 8, MSG_WAITALL), 8); });
  for (const char* part : {"ab", "cde", "fgh"}) {
    settle();
    CHECK_EQ(send(p.b, part, strlen(part), 0), strlen(part));
  }
  join(whole);
  CHECK_EQ(strcmp(text, "abcdefgh"), 0);
  // One waits for the whole, another for anything: nothing is lost between them.
  std::atomic<int> got{0};
  const pthread_t all = start([&] {
    char some[6];
    got += static_cast<int>(recv(p.a, some, 6, MSG_WAITALL));
  });
  const pthread_t any = start([&] {
    char some[6];
    while (got < 1000) {
      const ssize_t n = recv(p.a, some, 1, 0);
      if (n == 0) return;
      got += static_cast<int>(n);
    }
  });
  for (int i = 0; i < 12; ++i) {
    put(p.b, 'x');
    if (i % 5 == 0) settle();
  }
  CHECK_EQ(shutdown(p.b, SHUT_WR), 0);
  join(all);
  join(any);
  CHECK_EQ(got.load(), 12);
}

}  // namespace

int main() {
  const Pair u = unix_pair(SOCK_DGRAM), q = unix_pair(SOCK_SEQPACKET), i = udp_pair();
  for (const Pair& p : {u, q, i}) peek(p, 1);  // kernel threads: one of those that wait for messages is woken
  for (const Pair& p : {unix_pair(), tcp_pair()}) peek(p, 3);
  datagrams(u);
  datagrams(i);
  streams(unix_pair());
  streams(tcp_pair());
}
