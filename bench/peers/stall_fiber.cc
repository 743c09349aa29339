// stall_read and stall_fault of bench/block.c on Boost.Fiber, with the same result line: fibers of one kernel thread, of which
// the computing one yields at each look at the clock, as fibers must.
//
//   upcall-bench-fiber NAME [--scale X]
#include <algorithm>
#include <boost/fiber/all.hpp>
#include <boost/version.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "../stall.h"

namespace {

constexpr int kWrong = 1;
constexpr int kUsage = 2;

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Of one kernel thread: nothing is atomic.
struct {
  bool blocked = false, over = false;
  Clock::duration longest{};  // gap between two looks at the clock in the current stall
  Clock::time_point last{};   // look at the clock
} stall;

[[noreturn]] void fail(int status, const char* what) {
  fprintf(stderr, "%s\n", what);
  exit(status);
}

void compute_and_watch() {
  auto last = Clock::now();
  while (!stall.over) {
    auto t = Clock::now();
    stall.longest = stall.blocked ? std::max(stall.longest, t - last) : Clock::duration();
    stall.last = last = t;
    boost::this_fiber::yield();
  }
}

void measure_stalls(const char* name, void (*block)(int), int count) {
  std::vector<double> gaps;
  boost::fibers::fiber computing(compute_and_watch);
  while (stall.last == Clock::time_point()) boost::this_fiber::sleep_for(milliseconds(1));
  for (int i = 0; i < count; ++i) {
    boost::this_fiber::sleep_for(milliseconds(3));  // the other one runs
    stall.blocked = true;
    auto begin = Clock::now();
    block(i);
    auto end = Clock::now();
    // The gap that lasts until the stall ends counts, too.
    std::chrono::duration<double, std::micro> gap = std::max(stall.longest, end - stall.last);
    gaps.push_back(gap.count());
    stall.blocked = false;
    if (end - begin <= std::chrono::nanoseconds(STALL_NS / 2))
      fail(kWrong, "stall: did not block long enough");
  }
  stall.over = true;
  computing.join();
  std::sort(gaps.begin(), gaps.end());
  printf(
      "{\"name\":\"%s\",\"unit\":\"us\",\"value\":%.6g,\"count\":%d,\"checked\":true,\"upcall\":false,"
      "\"runtime\":\"Boost %d.%d\",\"details\":{\"longest_us\":%.6g}}\n",
      name, gaps[gaps.size() / 2], count, BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, gaps.back());
}

}  // namespace

int main(int argc, char** argv) {
  double scale = 1;
  if (argc == 4 && std::string_view(argv[2]) == "--scale") scale = strtod(argv[3], nullptr);
  if ((argc != 2 && argc != 4) || !(scale > 0 && scale <= 1e7))
    fail(kUsage, "usage: upcall-bench-fiber NAME [--scale X]; X is a positive number");
  int count = std::clamp(static_cast<int>(12 * scale), 3, static_cast<int>(MOST_STALLS));
  std::string_view name = argv[1];
  if (name != "stall_read" && name != "stall_fault")
    fail(kUsage, "unknown benchmark; stall_read and stall_fault are known");
  if (name == "stall_fault") open_fault_area(MOST_STALLS);
  start_answers();
  measure_stalls(argv[1], name == "stall_read" ? block_in_read : block_in_fault, count);
  end_helper();
  return 0;
}
