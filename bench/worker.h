// One benchmark, run once, in a process of its own: an ordinary pthread program that knows nothing of Upcall.
// Every benchmark checks its own work and ends the process with a message when a check fails.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// Exit statuses of the worker beside 0.
enum { WRONG = 1, USAGE = 2, LIMIT = 3 };

struct options {
  double scale;  // multiplies the duration or the number of threads
  long count;    // number of threads; 0: the benchmark's own
  // Of benchmarks with two processes: the command of the other one, with a null pointer behind it, and the list of its CPUs.
  // Null: this program itself, on this process's CPUs.
  char** server;
  const char* server_cpus;
  const char* fio;  // the program that reads in place of threads; null: none
};

struct result {
  double value;
  long count;           // operations behind the value
  const char* runtime;  // of the other process, if it is the one that was measured
  struct {
    const char* name;
    double value;
  } details[16];  // further figures, up to the first without a name
};

struct benchmark {
  const char* name;
  const char* unit;
  struct result (*run)(const struct options*);
};

// Ends the process. LIMIT: the system gives no more threads, which is an answer, not an error.
#define FAIL(status, ...)         \
  do {                            \
    fprintf(stderr, __VA_ARGS__); \
    fputc('\n', stderr);          \
    exit(status);                 \
  } while (0)
#define EXPECT(condition, ...)                  \
  do {                                          \
    if (!(condition)) FAIL(WRONG, __VA_ARGS__); \
  } while (0)

extern char** worker_arguments;
// Monotonic, ns.
uint64_t now(void);
// How long a benchmark measured by duration goes on, ns.
uint64_t duration(const struct options* options);
long thread_count(const struct options* options, long standard);
pthread_t start_thread(void* (*body)(void*), void* argument);
void* join_thread(pthread_t thread);

struct result null_fork(const struct options*);
struct result fork_batch(const struct options*);
struct result dc_sum(const struct options*);
struct result memory(const struct options*);
struct result yield_turns(const struct options*);
struct result signal_wait(const struct options*);
struct result mutex_contended(const struct options*);
struct result spin_lock(const struct options*);
struct result spin_own(const struct options*);
struct result fair_share(const struct options*);
struct result fair_share_threads(const struct options*);
struct result stall_read(const struct options*);
struct result stall_fault(const struct options*);
struct result fault_storm(const struct options*);
struct result io_test(const struct options*);
struct result call_msgrcv(const struct options*);
struct result call_semop(const struct options*);
struct result call_mq(const struct options*);
struct result call_splice(const struct options*);
struct result call_sendfile(const struct options*);
struct result call_waitid(const struct options*);
struct result kernel_signal_wait(const struct options*);
struct result blocked_many(const struct options*);
struct result idle_cost(const struct options*);
struct result syscall_overhead(const struct options*);
struct result syscall_function(const struct options*);
struct result signal_thread(const struct options*);
struct result mask_pair(const struct options*);
struct result fork_exec(const struct options*);
struct result echo_1(const struct options*);
struct result echo_1000(const struct options*);
struct result echo_10000(const struct options*);
struct result idle_10000(const struct options*);
struct result reactivity_tcp(const struct options*);
struct result reactivity_unix(const struct options*);
struct result detector_overhead(const struct options*);
struct result detector_remote(const struct options*);
struct result disk_cold(const struct options*);
struct result disk_direct(const struct options*);
struct result disk_warm(const struct options*);
struct result floor_call(const struct options*);
