// What stands below the table of `upcall bench`: the further figures of a run.
#pragma once

#include <optional>
#include <string>

#include "bench.h"

namespace upcall::tool {

// A second target of a row.
struct Further {
  std::string what;
  double value;
  std::string target;
  bool met;
};
std::optional<Further> further_target(const Row& row);

// Lines, or "".
std::string details_text(const Row& row);

// "5.40/7.02/9.90": the median p50, p99 and p99.9 of the runs, in ms.
std::string latencies_ms(const Runs& runs);

}  // namespace upcall::tool
