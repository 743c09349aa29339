// abi: threads=13
// General, xmm, ymm, zmm and mask registers, flags and the red zone live through an inline `syscall` while other
// threads hold other values: across a yield, a wait for a wake-up, a sleep, a timed-out wait, a blocking read.
#include "hold.h"

static uint32_t word = 0;
static int pipe_ends[2];

static void one_call(uint64_t seed, const Call& call) {
  Pattern in, out = {};
  in = pattern(seed, 256);
  hold_xmm_syscall(&in, &out, &call);
  expect_held("xmm", in, out, 256);
  if (has_avx2()) {
    in = pattern(seed + 1, 512);
    hold_ymm_syscall(&in, &out, &call);
    expect_held("ymm", in, out, 512);
  }
  if (has_avx512()) {
    in = pattern(seed + 2, 2048 + 64);
    hold_zmm_syscall(&in, &out, &call);
    expect_held("zmm and mask", in, out, 2048 + 64);
  }
  in = pattern(seed + 3, 128);
  hold_red_zone_syscall(&in, &out, &call);
  expect_held("red zone", in, out, 128);

  in = pattern(seed + 4, 48);
  out = {};
  hold_general_syscall(&in, &out, &call);
  expect_held("general", in, out, 48);
  long found[6];
  memcpy(found, out.bytes + 48, sizeof found);
  for (int i = 0; i < 6; ++i) CHECK_EQ(found[i], call.arguments[i]);

  constexpr unsigned long kCarry = 1, kParity = 4, kAdjust = 16, kZero = 64, kSign = 128, kDirection = 1024,
                          kOverflow = 2048;
  for (unsigned long flags :
       {0ul, kCarry, kZero, kSign, kOverflow, kParity | kAdjust, kCarry | kZero | kOverflow})
    CHECK_EQ(hold_flags_syscall(0x202 | flags, 0, &call) &
                 (kCarry | kParity | kAdjust | kZero | kSign | kDirection | kOverflow),
             flags);
}

static void body(int id) {
  const timespec little = {0, 300'000};
  char byte;
  const Call calls[] = {
      {SYS_sched_yield, {1, 2, 3, 4, 5, 6}},
      {SYS_getppid, {11, 12, 13, 14, 15, 16}},
      {SYS_nanosleep, {reinterpret_cast<long>(&little), 0, 3, 4, 5, id}},
      {SYS_futex,
       {reinterpret_cast<long>(&word), FUTEX_WAIT_PRIVATE, 0, reinterpret_cast<long>(&little), 5, 6}},
      {SYS_futex, {reinterpret_cast<long>(&word), FUTEX_WAIT_PRIVATE, 1, 0, 5, 6}},
      {SYS_futex, {reinterpret_cast<long>(&word), FUTEX_WAKE_PRIVATE, 2, 0, 5, 6}},
      {SYS_read, {pipe_ends[0], reinterpret_cast<long>(&byte), 1, 4, 5, 6}},
      {SYS_read, {-1, 2, 3, 4, 5, 6}},
  };
  for (int round = 0; round < 6; ++round)
    for (const Call& call : calls)
      one_call(static_cast<uint64_t>(id) * 1000 + static_cast<uint64_t>(round) * 10, call);
}

int main() {
  CHECK_EQ(pipe(pipe_ends), 0);
  std::vector<pthread_t> threads;
  for (int id = 1; id <= 12; ++id) threads.push_back(start([id] { body(id); }));
  std::atomic<bool> stop{false};
  const pthread_t feeder = start([&stop] {
    while (!stop) {
      char bytes[16] = {};
      CHECK(write(pipe_ends[1], bytes, sizeof bytes) > 0);
      futex(&word, FUTEX_WAKE_PRIVATE, 1);
      nap(200'000);
    }
  });
  body(0);
  join_all(threads);
  stop = true;
  char drain[65536];
  CHECK(read(pipe_ends[0], drain, sizeof drain) > 0);
  join(feeder);
}
