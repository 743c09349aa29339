// abi: threads=12
// accept, recv, recvmsg and a send into a full socket leave the processor to others.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "blocking.h"

int main() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(listener >= 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  socklen_t length = sizeof address;
  CHECK_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  CHECK_EQ(listen(listener, 5), 0);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  int server = -1;
  others_go_on(
      "accept", [&] { server = accept(listener, nullptr, nullptr); },
      [&] { CHECK_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0); });
  CHECK(server >= 0);
  char byte = 0;
  others_go_on(
      "recv", [&] { CHECK_EQ(recv(server, &byte, 1, 0), 1); }, [&] { CHECK_EQ(send(client, "x", 1, 0), 1); });
  CHECK_EQ(byte, 'x');
  iovec part = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  others_go_on(
      "recvmsg", [&] { CHECK_EQ(recvmsg(client, &message, 0), 1); },
      [&] { CHECK_EQ(send(server, "y", 1, 0), 1); });
  CHECK_EQ(byte, 'y');
  std::vector<char> large(16 << 20, 'z');
  others_go_on(
      "send", [&] { CHECK_EQ(send(client, large.data(), large.size(), 0), large.size()); },
      [&] {
        std::vector<char> sink(1 << 20);
        for (size_t total = 0; total < large.size();) {
          const ssize_t got = recv(server, sink.data(), sink.size(), 0);
          CHECK(got > 0);
          total += static_cast<size_t>(got);
        }
      });
}
