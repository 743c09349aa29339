// abi: threads=40 descriptors=events timeout=40
// Several threads read one stream, several write to it: each byte comes once, each message as a whole.
#include "descriptor.h"

namespace {

// Every number from 1 to kNumbers by one of the writers, in messages of four bytes, which are whole in all of these.
void numbers(const Pair& p, bool stream) {
  constexpr uint32_t kWriters = 4, kEach = 1000, kReaders = 5;
  std::vector<std::atomic<uint8_t>> seen(kWriters * kEach + 1);
  std::vector<pthread_t> writers, readers;
  for (uint32_t r = 0; r < kReaders; ++r)
    readers.push_back(start([&] {
      for (;;) {
        uint32_t n = 0;
        const ssize_t got = read(p.a, &n, sizeof n);
        if (got == 0) return;
        CHECK_EQ(got, sizeof n);
        if (n == 0) return;
        CHECK(n <= kWriters * kEach);
        CHECK_EQ(seen[n]++, 0);
      }
    }));
  for (uint32_t w = 0; w < kWriters; ++w)
    writers.push_back(start([&, w] {
      for (uint32_t i = 1; i <= kEach; ++i) {
        const uint32_t n = w * kEach + i;
        CHECK_EQ(write(p.b, &n, sizeof n), sizeof n);
        if (i % 50 == 0) sched_yield();
        if (i % 300 == 0) nap(kMs);
      }
    }));
  join_all(writers);
  if (stream) {
    CHECK_EQ(shutdown(p.b, SHUT_WR), 0);
  } else {
    for (uint32_t r = 0; r < kReaders; ++r) {
      const uint32_t end = 0;
      CHECK_EQ(write(p.b, &end, sizeof end), sizeof end);
    }
  }
  join_all(readers);
  for (uint32_t n = 1; n <= kWriters * kEach; ++n) CHECK_EQ(seen[n].load(), 1);
  close_both(p);
}

// Large writes of several threads may be mixed on a stream, but nothing is lost.
void bytes(const Pair& p) {
  constexpr size_t kWriters = 3, kRounds = 3, kBytes = 700'001;
  std::vector<pthread_t> threads;
  std::atomic<size_t> count[kWriters] = {};
  for (size_t w = 0; w < kWriters; ++w)
    threads.push_back(start([&, w] {
      const std::vector<char> text(kBytes, static_cast<char>(w));
      for (size_t i = 0; i < kRounds; ++i) CHECK_EQ(write(p.b, text.data(), kBytes), kBytes);
    }));
  std::vector<pthread_t> readers;
  for (int r = 0; r < 3; ++r)
    readers.push_back(start([&] {
      std::vector<char> text(50'000);
      for (ssize_t n; (n = read(p.a, text.data(), text.size())) != 0;) {
        CHECK(n > 0);
        for (ssize_t i = 0; i < n; ++i) ++count[static_cast<size_t>(text[static_cast<size_t>(i)])];
      }
    }));
  join_all(threads);
  CHECK_EQ(close(p.b), 0);
  join_all(readers);
  for (auto& c : count) CHECK_EQ(c.load(), kRounds * kBytes);
  close(p.a);
}

// Packets keep their bounds, however many threads send them to a full queue.
void packets(const Pair& p) {
  constexpr int kSenders = 4, kEach = 200;
  std::vector<pthread_t> threads;
  for (int s = 0; s < kSenders; ++s)
    threads.push_back(start([&, s] {
      for (int i = 1; i <= kEach; ++i) {
        const size_t length = static_cast<size_t>(1 + (i * 977 + s) % 20'000);
        const std::vector<char> text(length, static_cast<char>(s));
        CHECK_EQ(send(p.b, text.data(), length, 0), length);
      }
    }));
  std::atomic<int> next[kSenders] = {};
  std::vector<char> text(20'001);
  settle();
  for (int i = 0; i < kSenders * kEach; ++i) {
    const ssize_t n = recv(p.a, text.data(), text.size(), 0);
    CHECK(n > 0);
    const int s = text[0];
    CHECK(s >= 0 && s < kSenders);
    CHECK_EQ(n, 1 + (++next[s] * 977 + s) % 20'000);
    for (ssize_t b = 0; b < n; ++b) CHECK_EQ(text[static_cast<size_t>(b)], s);
    if (i % 100 == 0) nap(kMs);
  }
  join_all(threads);
  close_both(p);
}

}  // namespace

int main() {
  numbers(unix_pair(SOCK_SEQPACKET), false);
  numbers(unix_pair(SOCK_DGRAM), false);
  numbers(unix_pair(), true);
  bytes(unix_pair());
  bytes(tcp_pair());
  bytes(pipe_pair());
  packets(unix_pair(SOCK_SEQPACKET));
  packets(unix_pair(SOCK_DGRAM));
}
