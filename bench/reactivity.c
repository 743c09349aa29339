// Ping-pong with a thread of another process: what it takes until the thread that blocks for it goes on.
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "companion.h"
#include "histogram.h"

static struct companion server;

// Round trips until `length` has passed and there are `enough`, or until ten times the length and a second.
static void ping_pong(int fd, uint64_t length, uint64_t enough, struct histogram* latencies) {
  uint64_t begin = now(), last = begin;
  for (uint32_t i = 0; i < 10; ++i) {
    exchange(&server, fd, i);
    if (now() - begin > length) break;
  }
  begin = last = now();
  for (uint32_t i = 0;
       last - begin < length || (latencies->count < enough && last - begin < 10 * length + 1000000000u);
       ++i) {
    exchange(&server, fd, i);
    uint64_t t = now();
    histogram_add(latencies, t - last);
    last = t;
  }
}

// PIOMan's figure 2. The value is the p99 with the most computing threads; the details are the curve.
static struct result reactivity(const struct options* options, const char* transport) {
  static const int computing[] = {0, 1, 4, 16, 64};
  static char names[5][3][24];
  enum { POINTS = 5, ENOUGH = 100 };
  struct result result = {.runtime = server.runtime};
  for (int i = 0; i < POINTS; ++i) {
    char text[16];
    struct histogram latencies = {0};
    snprintf(text, sizeof text, "%d", computing[i]);
    const char* const words[] = {"serve_reactive", transport, text, NULL};
    start_companion(&server, options, words, -1);
    int fd = connect_companion(&server);
    ping_pong(fd, duration(options), ENOUGH, &latencies);
    close(fd);
    double figures[] = {histogram_percentile(&latencies, 0.5) / 1e3,
                        histogram_percentile(&latencies, 0.99) / 1e3, end_companion(&server)};
    static const char* const labels[] = {"p50_us", "p99_us", "computed"};
    for (int k = 0; k < 3; ++k) {
      snprintf(names[i][k], sizeof names[i][k], "%s_%d", labels[k], computing[i]);
      result.details[3 * i + k].name = names[i][k];
      result.details[3 * i + k].value = figures[k];
    }
    result.value = figures[1];
    result.count += (long)latencies.count;
  }
  return result;
}

struct result reactivity_tcp(const struct options* options) {
  return reactivity(options, "tcp");
}
struct result reactivity_unix(const struct options* options) {
  return reactivity(options, "unix");
}

// PIOMan's table 2: round trips with nothing else to do on either side; the median.
static struct result round_trip(const struct options* options, bool same_cpu) {
  static const char* const words[] = {"serve_pair", NULL};
  static struct histogram latencies;
  int fds[2];
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0, "socketpair: %s", strerror(errno));
  start_companion(&server, options, words, fds[1]);
  close(fds[1]);
  if (same_cpu && options->server_cpus != NULL) pin_to(options->server_cpus);
  ping_pong(fds[0], duration(options), 1, &latencies);
  close(fds[0]);
  end_companion(&server);
  return (struct result){.value = histogram_percentile(&latencies, 0.5) / 1e3,
                         .count = (long)latencies.count,
                         .runtime = server.runtime,
                         .details = {{"p99_us", histogram_percentile(&latencies, 0.99) / 1e3}}};
}

struct result detector_overhead(const struct options* options) {
  return round_trip(options, true);
}
struct result detector_remote(const struct options* options) {
  return round_trip(options, false);
}
