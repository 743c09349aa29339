// abi: threads=8
// Rounding modes (mxcsr and x87 control word) and values on the x87 stack belong to the thread, across yields,
// waits and preemption; a new thread inherits its creator's modes.
#include <fenv.h>

#include "hold.h"

static unsigned read_mxcsr() { return __builtin_ia32_stmxcsr(); }

static unsigned short read_control() {
  unsigned short word;
  asm volatile("fnstcw %0" : "=m"(word));
  return word;
}

static void body(int id) {
  const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  const int mode = modes[id % 4];
  CHECK_EQ(fesetround(mode), 0);
  const unsigned mxcsr = read_mxcsr() & 0xffc0u;
  const unsigned short control = read_control();
  const timespec little = {0, 200'000};
  const Call yield = {SYS_sched_yield, {}},
             sleep = {SYS_nanosleep, {reinterpret_cast<long>(&little), 0, 0, 0, 0, 0}};
  const double in[4] = {id + 0.25, id * 1e10, -1.0 / (id + 1), 42.0 + id};
  for (int round = 0; round < 30; ++round) {
    double out[4] = {};
    hold_x87_syscall(in, out, round % 5 == 0 ? &sleep : &yield);
    CHECK(memcmp(in, out, sizeof in) == 0);
    memset(out, 0, sizeof out);
    hold_x87_loop(in, out, 200'000);
    CHECK(memcmp(in, out, sizeof in) == 0);
    if (round % 3 == 0) nap(100'000);
    CHECK_EQ(fegetround(), mode);
    CHECK_EQ(read_mxcsr() & 0xffc0u, mxcsr);
    CHECK_EQ(read_control(), control);
  }
}

int main() {
  std::vector<pthread_t> threads;
  for (int id = 0; id < 7; ++id) threads.push_back(start([id] { body(id); }));
  join_all(threads);
  CHECK_EQ(fegetround(), FE_TONEAREST);
  CHECK_EQ(fesetround(FE_UPWARD), 0);
  join(start([] { CHECK_EQ(fegetround(), FE_UPWARD); }));
}
