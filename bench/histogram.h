// Latencies in buckets that are 1/64 of their value wide: percentiles of any number of them in fixed memory.
#pragma once

#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 3776 };

struct histogram {
  uint64_t count, most;
  uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram* h, uint64_t value);
// The value that `share` (0 to 1) of all do not exceed; 0 of none.
double histogram_percentile(const struct histogram* h, double share);
