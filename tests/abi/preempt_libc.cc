// abi: threads=12 timeout=40
// Preemption inside malloc, stdio, C++ exceptions and string formatting leaves all of them intact.
#include <stdexcept>

#include "abi.h"

static int64_t thrower(int depth) {
  const std::string local(static_cast<size_t>(20 + depth), 'x');
  if (depth == 0) throw std::runtime_error(local);
  return thrower(depth - 1) + static_cast<int64_t>(local.size());
}

int main() {
  FILE* null_file = fopen("/dev/null", "w");
  CHECK(null_file != nullptr);
  const int64_t end = now_ns() + 700 * kMs * time_factor();
  std::atomic<int64_t> rounds{0};
  std::vector<pthread_t> threads;
  for (int id = 0; id < 12; ++id)
    threads.push_back(start([&, id] {
      uint32_t seed = static_cast<uint32_t>(id) * 7919 + 1;
      std::vector<std::pair<unsigned char*, size_t>> blocks;
      while (now_ns() < end) {
        for (int i = 0; i < 50; ++i) {
          seed = seed * 1664525 + 1013904223;
          const size_t size = 1 + (seed >> 16) % 3000;
          auto* block = static_cast<unsigned char*>(malloc(size));
          CHECK(block != nullptr);
          memset(block, id, size);
          blocks.emplace_back(block, size);
          if (blocks.size() > 40) {
            const size_t victim = seed % blocks.size();
            for (size_t at = 0; at < blocks[victim].second; at += 97) CHECK_EQ(blocks[victim].first[at], id);
            free(blocks[victim].first);
            blocks[victim] = blocks.back();
            blocks.pop_back();
          }
        }
        CHECK(fprintf(null_file, "%d %s %f\n", id, "text", 1.0 / (id + 1)) > 0);
        char text[64];
        snprintf(text, sizeof text, "%d:%.3f", id, id * 0.5);
        int back = -1;
        double half = -1;
        CHECK_EQ(sscanf(text, "%d:%lf", &back, &half), 2);
        CHECK(back == id && half == id * 0.5);
        try {
          thrower(8);
          FAIL("nothing thrown");
        } catch (const std::runtime_error& error) {
          CHECK_EQ(strlen(error.what()), 20);
        }
        ++rounds;
      }
      for (auto& [block, size] : blocks) {
        CHECK_EQ(block[size - 1], id);
        free(block);
      }
    }));
  join_all(threads);
  CHECK(rounds >= 12);
  fclose(null_file);
}
