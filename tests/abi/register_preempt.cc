// abi: threads=10
// General, xmm, ymm, zmm and mask registers and the red zone live through preemption of loops without any call.
#include "hold.h"

static void body(int id, int64_t end) {
  constexpr long kCount = 400'000;
  for (uint64_t round = 0; now_ns() < end; ++round) {
    const uint64_t seed = static_cast<uint64_t>(id) * 100'000 + round;
    Pattern in = pattern(seed, 256), out = {};
    hold_xmm_loop(&in, &out, kCount);
    expect_held("xmm", in, out, 256);
    if (has_avx2()) {
      in = pattern(seed + 1, 512);
      hold_ymm_loop(&in, &out, kCount);
      expect_held("ymm", in, out, 512);
    }
    if (has_avx512()) {
      in = pattern(seed + 2, 2048 + 64);
      hold_zmm_loop(&in, &out, kCount);
      expect_held("zmm and mask", in, out, 2048 + 64);
    }
    in = pattern(seed + 3, 112);
    hold_general_loop(&in, &out, kCount);
    expect_held("general", in, out, 112);
    in = pattern(seed + 4, 128);
    hold_red_zone_loop(&in, &out, kCount);
    expect_held("red zone", in, out, 128);
  }
}

int main() {
  const int64_t end = now_ns() + 600 * kMs;
  std::vector<pthread_t> threads;
  for (int id = 1; id <= 10; ++id) threads.push_back(start([id, end] { body(id, end); }));
  body(0, end);
  join_all(threads);
}
