// abi: threads=13 descriptors=events
// Writes that a stream takes in parts answer for the whole, from one buffer, several, or many; reads in pieces of any size.
#include "descriptor.h"

namespace {

constexpr size_t kBytes = 3 << 20;

char at(size_t i) { return static_cast<char>(i * 31 + i / 4096); }

void move(const Pair& p, bool slow, size_t pieces) {
  std::vector<char> sent(kBytes);
  for (size_t i = 0; i < kBytes; ++i) sent[i] = at(i);
  const pthread_t reader = start([&] {
    std::vector<char> buffer(70'000);
    for (size_t done = 0; done < kBytes;) {
      const ssize_t n = read(p.a, buffer.data(), slow ? 1 + done % 65'537 : buffer.size());
      CHECK(n > 0);
      for (ssize_t i = 0; i < n; ++i)
        if (buffer[static_cast<size_t>(i)] != at(done + static_cast<size_t>(i)))
          FAIL("byte %zu is wrong", done);
      done += static_cast<size_t>(n);
      if (slow && done % 7 == 0) sched_yield();
    }
  });
  if (pieces == 1) {
    CHECK_EQ(write(p.b, sent.data(), kBytes), kBytes);
  } else {
    std::vector<iovec> parts;
    const size_t each = kBytes / pieces;
    for (size_t i = 0; i < pieces; ++i)
      parts.push_back({&sent[i * each], i + 1 < pieces ? each : kBytes - i * each});
    CHECK_EQ(writev(p.b, parts.data(), static_cast<int>(parts.size())), kBytes);
  }
  join(reader);
  close_both(p);
}

void message(const Pair& p) {
  std::vector<char> sent(kBytes);
  for (size_t i = 0; i < kBytes; ++i) sent[i] = at(i);
  const pthread_t reader = start([&] {
    std::vector<char> buffer(kBytes);
    CHECK_EQ(recv(p.a, buffer.data(), kBytes, MSG_WAITALL), kBytes);
    CHECK(buffer == sent);
  });
  iovec parts[3] = {
      {sent.data(), 1}, {&sent[1], kBytes / 2}, {&sent[1 + kBytes / 2], kBytes - 1 - kBytes / 2}};
  msghdr header = {};
  header.msg_iov = parts;
  header.msg_iovlen = 3;
  CHECK_EQ(sendmsg(p.b, &header, 0), kBytes);
  join(reader);
  close_both(p);
}

}  // namespace

int main() {
  for (const size_t pieces : {1ul, 7ul, 100ul})
    for (const bool slow : {false, true}) {
      move(pipe_pair(), slow, pieces);
      move(unix_pair(), slow, pieces);
      move(tcp_pair(), slow, pieces);
    }
  message(unix_pair());
  message(tcp_pair());
}
