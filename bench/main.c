// upcall-bench-worker NAME [--scale X] [--count N]: prints one JSON line.
// upcall-bench-worker NAME [--scale X] [--server-cpus LIST] [-- SERVER...]: where NAME has two processes, this one is the client.
// upcall-bench-worker serve | serve_epoll | serve_reactive tcp|unix N | serve_pair: the other one.
// upcall-bench-worker answer [pages]: the process that ends the stalls of a program which cannot fork (bench/peers/stall.go).
// Requests on standard input; answers on standard output, or pages by the userfaultfd that is descriptor 3.
#include <errno.h>
#include <link.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server.h"
#include "stall.h"
#include "worker.h"

static const struct benchmark benchmarks[] = {
    {"null_fork", "ns", null_fork},
    {"fork_batch", "ns", fork_batch},
    {"yield", "ns", yield_turns},
    {"signal_wait", "ns", signal_wait},
    {"mutex_contended", "ns", mutex_contended},
    {"spin_lock", "ns", spin_lock},
    {"spin_own", "ns", spin_own},
    {"fair_share", "percent", fair_share},
    {"fair_share_threads", "percent", fair_share_threads},
    {"dc_sum", "ns", dc_sum},
    {"memory", "bytes", memory},
    {"stall_read", "us", stall_read},
    {"stall_fault", "us", stall_fault},
    {"fault_storm", "us", fault_storm},
    {"io_test", "ns", io_test},
    {"kernel_signal_wait", "ns", kernel_signal_wait},
    {"call_msgrcv", "ns", call_msgrcv},
    {"call_semop", "ns", call_semop},
    {"call_mq", "ns", call_mq},
    {"call_splice", "ns", call_splice},
    {"call_sendfile", "us", call_sendfile},
    {"call_waitid", "us", call_waitid},
    {"blocked_many", "ms", blocked_many},
    {"idle_cost", "percent", idle_cost},
    {"syscall_overhead", "ns", syscall_overhead},
    {"syscall_function", "ns", syscall_function},
    {"signal_thread", "ns", signal_thread},
    {"mask_pair", "ns", mask_pair},
    {"fork_exec", "ms", fork_exec},
    {"echo_1", "req/s", echo_1},
    {"echo_1000", "req/s", echo_1000},
    {"echo_10000", "req/s", echo_10000},
    {"idle_10000", "percent", idle_10000},
    {"reactivity_tcp", "us", reactivity_tcp},
    {"reactivity_unix", "us", reactivity_unix},
    {"detector_overhead", "us", detector_overhead},
    {"detector_remote", "us", detector_remote},
    {"disk_cold", "IO/s", disk_cold},
    {"disk_direct", "IO/s", disk_direct},
    {"disk_warm", "ns", disk_warm},
    {"floor_call", "ns", floor_call},
};

char** worker_arguments;

uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t duration(const struct options* options) { return (uint64_t)(250e6 * options->scale); }

long thread_count(const struct options* options, long standard) {
  if (options->count > 0) return options->count;
  long scaled = (long)((double)standard * options->scale);
  return scaled < 2 ? 2 : scaled;
}

pthread_t start_thread(void* (*body)(void*), void* argument) {
  pthread_t thread;
  int error = pthread_create(&thread, NULL, body, argument);
  if (error != 0) FAIL(error == EAGAIN ? LIMIT : WRONG, "pthread_create: %s", strerror(error));
  return thread;
}

void* join_thread(pthread_t thread) {
  void* value;
  int error = pthread_join(thread, &value);
  EXPECT(error == 0, "pthread_join: %s", strerror(error));
  return value;
}

static int find_upcall(struct dl_phdr_info* info, size_t size, void* found) {
  (void)size;
  if (info->dlpi_name != NULL && strstr(info->dlpi_name, "libupcall.so") != NULL) *(bool*)found = true;
  return 0;
}

bool on_upcall(void) {
  bool found = false;
  dl_iterate_phdr(find_upcall, &found);
  return found;
}

static double positive(const char* option, const char* text) {
  char* end;
  errno = 0;
  double value = strtod(text, &end);
  if (errno != 0 || end == text || *end != '\0' || !(value > 0 && value <= 1e7)) {
    FAIL(USAGE, "%s: bad value '%s'; a positive number is accepted", option, text);
  }
  return value;
}

static void print(const struct benchmark* b, const struct result* r) {
  bool upcall = r->runtime != NULL ? strcmp(r->runtime, "upcall") == 0 : on_upcall();
  printf("{\"name\":\"%s\",\"unit\":\"%s\",\"value\":%.6g,\"count\":%ld,\"checked\":true,\"upcall\":%s",
         b->name, b->unit, r->value, r->count, upcall ? "true" : "false");
  bool peer = r->runtime != NULL && !upcall && strcmp(r->runtime, "kernel") != 0;
  if (peer) printf(",\"runtime\":\"%s\"", r->runtime);
  const char* before = ",\"details\":{";
  size_t most = sizeof r->details / sizeof *r->details;
  for (size_t i = 0; i < most && r->details[i].name != NULL; ++i, before = ",")
    printf("%s\"%s\":%.6g", before, r->details[i].name, r->details[i].value);
  puts(r->details[0].name != NULL ? "}}" : "}");
  if (fflush(stdout) != 0) FAIL(WRONG, "cannot write the result: %s", strerror(errno));
}

static void parse_options(char** words, struct options* options) {
  for (; *words != NULL; words += 2) {
    if (strcmp(words[0], "--") == 0) {
      if (words[1] == NULL) FAIL(USAGE, "--: needs the command of the server");
      options->server = words + 1;
      return;
    }
    if (words[1] == NULL) FAIL(USAGE, "%s: needs a value", words[0]);
    if (strcmp(words[0], "--scale") == 0) {
      options->scale = positive(words[0], words[1]);
    } else if (strcmp(words[0], "--count") == 0) {
      options->count = (long)positive(words[0], words[1]);
    } else if (strcmp(words[0], "--server-cpus") == 0) {
      options->server_cpus = words[1];
    } else if (strcmp(words[0], "--fio") == 0) {
      options->fio = words[1];
    } else {
      FAIL(USAGE, "unknown option %s; --scale X, --count N, --server-cpus LIST and --fio FILE are accepted",
           words[0]);
    }
  }
}

// The exit status, or -1 when this is to be no server.
static int be_server(int argc, char** argv) {
  if (strcmp(argv[1], "serve") == 0) return serve();
  if (strcmp(argv[1], "serve_epoll") == 0) return serve_epoll();
  if (strcmp(argv[1], "serve_pair") == 0) return serve_pair();
  if (strcmp(argv[1], "serve_reactive") != 0) return -1;
  char* end = NULL;
  bool tcp = argc == 4 && strcmp(argv[2], "tcp") == 0;
  long computing = argc == 4 ? strtol(argv[3], &end, 10) : -1;
  if (computing < 0 || *end != '\0' || (!tcp && strcmp(argv[2], "unix") != 0))
    FAIL(USAGE, "usage: upcall-bench-worker serve_reactive tcp|unix N");
  return serve_reactive(tcp, computing);
}

int main(int argc, char** argv) {
  struct options options = {.scale = 1};
  worker_arguments = argv;
  // The driver times the start of a program that does nothing.
  if (argc == 2 && strcmp(argv[1], "empty") == 0) return 0;
  if (argc >= 2 && strcmp(argv[1], "answer") == 0) {
    if (argc == 3 && strcmp(argv[2], "pages") == 0) fault_fd = 3;
    answer_requests(STDIN_FILENO, STDOUT_FILENO);
    return 0;
  }
  if (argc < 2) FAIL(USAGE, "usage: upcall-bench-worker NAME [--scale X] [--count N]");
  int served = be_server(argc, argv);
  if (served >= 0) return served;
  parse_options(argv + 2, &options);
  for (size_t i = 0; i < sizeof benchmarks / sizeof *benchmarks; ++i) {
    if (strcmp(argv[1], benchmarks[i].name) != 0) continue;
    struct result result = benchmarks[i].run(&options);
    print(&benchmarks[i], &result);
    return 0;
  }
  FAIL(USAGE, "unknown benchmark %s", argv[1]);
}
