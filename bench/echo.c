// Clients of an echo server with many connections, one outstanding request on each; single-threaded, by epoll.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "companion.h"
#include "histogram.h"
#include "stall.h"

// BATCH: connections made before their first answers are waited for, fewer than the server's backlog.
enum { REQUEST = 64, EVENTS = 256, BATCH = 128, SILENCE_S = 20, SPARE_DESCRIPTORS = 64, ENOUGH = 100 };

struct connection {
  int fd;
  uint32_t sequence;
  uint32_t received;  // bytes of the answer
  uint32_t answers;   // since the measuring began
  uint64_t sent_at;
  // One byte more than should come.
  unsigned char answer[REQUEST + 1];
};

static struct {
  struct companion server;
  int epoll;
  long count, outstanding;
  struct connection* connections;
  bool sending, recording;
  uint64_t answers;  // since the measuring began
  struct histogram latencies;
} load;

// Every request differs from every other of the run.
static void fill_request(unsigned char* to, const struct connection* c) {
  uint64_t words[REQUEST / 8];
  words[0] = (uint64_t)(c - load.connections) << 32 | c->sequence;
  for (size_t i = 1; i < REQUEST / 8; ++i) words[i] = (words[0] + i) * 0x9e3779b97f4a7c15u;
  memcpy(to, words, REQUEST);
}

static void send_request(struct connection* c) {
  unsigned char request[REQUEST];
  ++c->sequence;
  c->received = 0;
  fill_request(request, c);
  c->sent_at = now();
  // Nothing else is in the socket's buffer.
  if (send(c->fd, request, REQUEST, MSG_NOSIGNAL) != REQUEST) companion_lost(&load.server, "cannot send");
  ++load.outstanding;
}

static void take_answer(struct connection* c) {
  ssize_t got = recv(c->fd, c->answer + c->received, sizeof c->answer - c->received, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) companion_lost(&load.server, got == 0 ? "connection lost: closed" : "connection lost");
  c->received += (uint32_t)got;
  if (c->received < REQUEST) return;
  unsigned char wanted[REQUEST];
  fill_request(wanted, c);
  EXPECT(c->received == REQUEST && memcmp(c->answer, wanted, REQUEST) == 0,
         "wrong answer on connection %ld, request %u", (long)(c - load.connections), c->sequence);
  --load.outstanding;
  if (load.recording) {
    histogram_add(&load.latencies, now() - c->sent_at);
    ++c->answers;
    ++load.answers;
  }
  if (load.sending) send_request(c);
}

// Until the time `end` while `sending`, otherwise until nothing is outstanding.
static void run_load(uint64_t end) {
  struct epoll_event events[EVENTS];
  uint64_t last = now();
  for (uint64_t t = last; load.sending ? t < end : load.outstanding > 0; t = now()) {
    int count = epoll_wait(load.epoll, events, EVENTS, load.sending ? (int)((end - t) / 1000000) + 1 : 1000);
    EXPECT(count >= 0 || errno == EINTR, "epoll_wait: %s", strerror(errno));
    for (int i = 0; i < count; ++i) take_answer(&load.connections[events[i].data.u32]);
    if (count > 0) last = t;
    if (t - last > SILENCE_S * 1000000000ull) companion_lost(&load.server, "no answer for 20 s");
  }
}

// A round trip on each connection from `first` on.
static void ask_all(long first, long end) {
  for (long i = first; i < end; ++i) send_request(&load.connections[i]);
  run_load(0);
}

static void open_connections(const struct options* options, long count) {
  static const char* const words[] = {"serve", NULL};
  allow_descriptors(count + SPARE_DESCRIPTORS);
  load.count = count;
  load.connections = calloc((size_t)count, sizeof *load.connections);
  load.epoll = epoll_create1(EPOLL_CLOEXEC);
  EXPECT(load.connections != NULL && load.epoll >= 0, "no memory, or epoll_create1 failed");
  start_companion(&load.server, options, words, -1);
  for (long made = 0; made < count;) {
    long first = made;
    for (; made < count && made - first < BATCH; ++made) {
      struct connection* c = &load.connections[made];
      c->fd = connect_companion(&load.server);
      struct epoll_event event = {.events = EPOLLIN, .data = {.u32 = (uint32_t)made}};
      EXPECT(
          fcntl(c->fd, F_SETFL, O_NONBLOCK) == 0 && epoll_ctl(load.epoll, EPOLL_CTL_ADD, c->fd, &event) == 0,
          "connection %ld: %s", made, strerror(errno));
    }
    ask_all(first, made);
  }
}

static void close_connections(void) {
  for (long i = 0; i < load.count; ++i) close(load.connections[i].fd);
  close(load.epoll);
  end_companion(&load.server);
  free(load.connections);
}

static double own_cpu(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e9 +
         (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e3;
}

static struct result measure_echo(const struct options* options, long count) {
  uint64_t length = 8 * duration(options);
  open_connections(options, count);
  load.sending = true;
  for (long i = 0; i < count; ++i) send_request(&load.connections[i]);
  run_load(now() + length / 4);
  load.recording = true;
  double server_cpu = (double)companion_cpu(&load.server), client_cpu = own_cpu();
  uint64_t begin = now();
  // Answers come in rounds of all connections: a few of these, however short the run is and whatever runs beside it.
  do {
    run_load(now() + length);
  } while (load.answers < (uint64_t)(ENOUGH + 3 * count));
  double took = (double)(now() - begin), answered = (double)load.answers;
  server_cpu = (double)companion_cpu(&load.server) - server_cpu;
  client_cpu = own_cpu() - client_cpu;
  // Who has waited longest must be among the latencies: what is outstanding is answered and counts there, not in the rate.
  load.sending = false;
  run_load(0);
  uint32_t fewest = UINT32_MAX, most = 0;
  for (long i = 0; i < count; ++i) {
    uint32_t answers = load.connections[i].answers;
    if (answers < fewest) fewest = answers;
    if (answers > most) most = answers;
  }
  close_connections();
  return (struct result){.value = answered * 1e9 / took,
                         .count = (long)answered,
                         .runtime = load.server.runtime,
                         .details = {{"p50_us", histogram_percentile(&load.latencies, 0.5) / 1e3},
                                     {"p99_us", histogram_percentile(&load.latencies, 0.99) / 1e3},
                                     {"p999_us", histogram_percentile(&load.latencies, 0.999) / 1e3},
                                     {"longest_us", (double)load.latencies.most / 1e3},
                                     {"server_cpu_us", server_cpu / 1e3 / answered},
                                     {"client_busy_percent", 100 * client_cpu / took},
                                     {"fewest_of_a_connection", fewest},
                                     {"most_of_a_connection", most}}};
}

struct result echo_1(const struct options* options) {
  return measure_echo(options, 1);
}
struct result echo_1000(const struct options* options) {
  return measure_echo(options, 1000);
}
struct result echo_10000(const struct options* options) {
  return measure_echo(options, 10000);
}

// CPU time of a server with connections on which nothing happens. They are alive: each answers before and after.
struct result idle_10000(const struct options* options) {
  enum { CONNECTIONS = 10000, MOST_S = 60 };
  double seconds = 30 * options->scale;
  if (seconds < 0.2) seconds = 0.2;
  if (seconds > MOST_S) seconds = MOST_S;
  open_connections(options, CONNECTIONS);
  nap(500000000);  // what the last round trips have left behind
  double used = (double)companion_cpu(&load.server);
  uint64_t begin = now();
  nap((uint64_t)(seconds * 1e9));
  double took = (double)(now() - begin);
  used = (double)companion_cpu(&load.server) - used;
  ask_all(0, CONNECTIONS);
  close_connections();
  return (struct result){.value = 100 * used / took,
                         .count = CONNECTIONS,
                         .runtime = load.server.runtime,
                         .details = {{"seconds", took / 1e9}}};
}
