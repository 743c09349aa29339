#include "histogram.h"

// Values below 128 have a bucket each; from there on 64 buckets for every doubling.
enum { EXACT_BITS = 7, HALF = 1 << (EXACT_BITS - 1) };

static unsigned shift_of(uint64_t value) {
  unsigned top = 63 - (unsigned)__builtin_clzll(value | 1);
  return top < EXACT_BITS ? 0 : top - EXACT_BITS + 1;
}

void histogram_add(struct histogram* h, uint64_t value) {
  unsigned shift = shift_of(value);
  ++h->buckets[shift * HALF + (value >> shift)];
  ++h->count;
  if (value > h->most) h->most = value;
}

double histogram_percentile(const struct histogram* h, double share) {
  double wanted = share * (double)h->count;
  uint64_t seen = 0;
  for (unsigned i = 0; i < HISTOGRAM_BUCKETS; ++i) {
    seen += h->buckets[i];
    if (h->buckets[i] == 0 || (double)seen < wanted) continue;
    unsigned shift = i < 2 * HALF ? 0 : i / HALF - 1;
    uint64_t least = (uint64_t)(i - shift * HALF) << shift;
    double middle = (double)least + (double)((1ull << shift) - 1) / 2;
    return middle < (double)h->most ? middle : (double)h->most;
  }
  return (double)h->most;
}
