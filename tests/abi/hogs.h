// Other processes that keep every CPU busy.
#pragma once

#include <sys/prctl.h>

#include "abi.h"

namespace upcall::test {

// One for each CPU; they end with the caller's kernel thread at the latest.
inline std::vector<pid_t> start_hogs() {
  std::vector<pid_t> hogs;
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  for (long i = 0; i < cpus; ++i) {
    hogs.push_back(fork());
    CHECK(hogs.back() >= 0);
    if (hogs.back() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) burn(kSecond);
    }
  }
  return hogs;
}

inline void end_hogs(const std::vector<pid_t>& hogs) {
  for (const pid_t hog : hogs) {
    CHECK_EQ(kill(hog, SIGKILL), 0);
    CHECK_EQ(waitpid(hog, nullptr, 0), hog);
  }
}

}  // namespace upcall::test
