// abi: threads=6
// A transfer that a handler interrupts after a part of it has been done answers how much that was (write(2), send(2),
// recv(2)), with and without SA_RESTART; nothing of it is lost or done twice.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "abi.h"

static std::atomic<int> handled{0};

// `transfer` moves some of its bytes and then waits; answers how many it says.
template <class F, class G>
static ssize_t interrupted(int signal, F transfer, G has_begun) {
  std::atomic<ssize_t> result{-2};
  const pthread_t thread = start([&] {
    const ssize_t moved = transfer();
    result = moved == -1 ? -1000 - errno : moved;
  });
  while (!has_begun()) nap(kMs / 4);
  for (int i = 0; result == -2 && i < 8000; ++i) {
    pthread_kill(thread, signal);
    nap(kMs / 2);
  }
  join(thread);
  CHECK(handled > 0);
  handled = 0;
  return result;
}

static int waiting(int fd) {
  int bytes = 0;
  CHECK_EQ(ioctl(fd, FIONREAD, &bytes), 0);
  return bytes;
}

static void check_content(int fd, ssize_t bytes) {
  std::vector<unsigned char> got(static_cast<size_t>(bytes));
  for (ssize_t at = 0; at < bytes;) {
    const ssize_t n = read(fd, &got[static_cast<size_t>(at)], static_cast<size_t>(bytes - at));
    CHECK(n > 0);
    at += n;
  }
  for (size_t i = 0; i < got.size(); ++i) CHECK_EQ(got[i], static_cast<unsigned char>(i * 7 / 5));
  CHECK_EQ(waiting(fd), 0);
}

int main() {
  install(
      SIGUSR1, [](int) { ++handled; }, SA_RESTART);
  install(SIGUSR2, [](int) { ++handled; });
  std::vector<unsigned char> data(1 << 20);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 7 / 5);
  for (int signal : {SIGUSR1, SIGUSR2}) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    const int capacity = fcntl(ends[1], F_GETPIPE_SZ);
    const ssize_t written = interrupted(
        signal, [&] { return write(ends[1], data.data(), data.size()); },
        [&] { return waiting(ends[0]) == capacity; });
    CHECK_EQ(written, capacity);
    check_content(ends[0], written);

    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    const ssize_t sent = interrupted(
        signal, [&] { return send(pair[0], data.data(), data.size(), 0); },
        [&] { return waiting(pair[1]) > 0; });
    CHECK(sent > 0 && sent < static_cast<ssize_t>(data.size()));
    check_content(pair[1], sent);

    CHECK_EQ(write(pair[0], data.data(), 1000), 1000);
    std::vector<unsigned char> into(5000);
    const ssize_t received = interrupted(
        signal, [&] { return recv(pair[1], into.data(), into.size(), MSG_WAITALL); },
        [&] { return waiting(pair[1]) == 0; });
    CHECK_EQ(received, 1000);
    CHECK_EQ(memcmp(into.data(), data.data(), 1000), 0);
    for (int fd : {ends[0], ends[1], pair[0], pair[1]}) close(fd);
  }
}
