#include "event/numbers.h"

#include <fcntl.h>

#include "base/atomic.h"
#include "base/syscall.h"

namespace upcall::event {

namespace {

atomic<int32_t> g_own[] = {none, none};
static_assert(sizeof g_own / sizeof *g_own == sizeof all_own / sizeof *all_own);

atomic<int32_t>& place(Own which) noexcept { return g_own[static_cast<uint8_t>(which)]; }

// Programs take the lowest numbers, and close all above some; ours are in nobody's way there, and the table of descriptors
// that a fork copies does not become larger for them.
int move_away(int fd) noexcept {
  uint64_t limit[2] = {};
  constexpr int nofile = 7;
  kernel::sys(__NR_prlimit64, 0, nofile, nullptr, static_cast<void*>(limit));
  constexpr uint64_t usual = 1024, below = 24;
  uint64_t lowest = limit[0] < usual ? (limit[0] > 2 * below ? limit[0] - below : 0) : usual - below;
  long moved = kernel::sys(__NR_fcntl, fd, F_DUPFD_CLOEXEC, lowest);
  if (kernel::is_error(moved)) return fd;
  kernel::sys(__NR_close, fd);
  return static_cast<int>(moved);
}

}  // namespace

int number_of(Own which) noexcept {
  return place(which).load(acquire);  // pairs with keep
}

int keep(Own which, int made) noexcept {
  int32_t fd = move_away(made), known = none;
  if (place(which).compare_exchange_strong(known, fd, acq_rel, acquire)) return fd;
  kernel::sys(__NR_close, fd);
  return known;
}

bool is_own(int descriptor) noexcept {
  for (const auto& own : g_own)
    if (own.load(relaxed) == descriptor && descriptor != none) return true;
  return false;
}

int next_own(int first) noexcept {
  int found = none;
  for (const auto& own : g_own)
    if (int fd = own.load(relaxed); fd >= first && fd != none && (found == none || fd < found)) found = fd;
  return found;
}

void give_up_number(int descriptor) noexcept {
  long moved = kernel::sys(__NR_fcntl, descriptor, F_DUPFD_CLOEXEC, 0);
  if (kernel::is_error(moved)) return;
  for (auto& own : g_own) {
    int32_t mine = descriptor;
    if (own.compare_exchange_strong(mine, static_cast<int32_t>(moved), acq_rel, relaxed)) return;
  }
  kernel::sys(__NR_close, moved);
}

void close_own(Own which) noexcept {
  int32_t fd = place(which).exchange(none, relaxed);
  if (fd != none) kernel::sys(__NR_close, fd);
}

}  // namespace upcall::event
