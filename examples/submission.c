/* Who should hand a request to its device: the thread that asks, or an idle processor?
 *
 *   submission [--milliseconds N] [--compute US]
 *
 * A message of some bytes is copied into a device's buffer, as a network driver does with small messages. Its sender then computes
 * for 50 us (or US) and waits for the message. With UPCALL_SUBMIT_LATER the copy is left to the driver's poller, on whichever processor
 * is free: the sender computes meanwhile. For each size: time of a round both ways, medians of 7 runs in alternation, and who
 * gains. Each message is compared with what arrived. On one processor nothing can be gained; where processors sleep, waking one
 * costs more than a small copy.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <upcall/event.h>

enum { largest = 1 << 20, runs = 7 };

static long milliseconds = 20, compute_us = 50;

/* --- the device */
struct message {
  const unsigned char* data;
  size_t size;
};

struct device {
  unsigned char buffer[largest];
  size_t size;
};

static int submit(void* context, upcall_request* request) {
  struct device* device = context;
  const struct message* message = request->data;
  memcpy(device->buffer, message->data, message->size);
  device->size = message->size;
  request->device[0] = 1;
  return 0;
}

/* Sent as soon as it is in the buffer. */
static int poll_one(void* context, upcall_request* request) {
  const struct device* device = context;
  if (!request->device[0]) return 0;
  request->result = (int64_t)device->size;
  return 1;
}

static int cancel(void* context, upcall_request* request) {
  (void)context;
  request->device[0] = 0;
  return 0;
}

static void stop(const char* what, int error) {
  fprintf(stderr, "submission: %s: %s\n", what, strerror(error));
  exit(1);
}

static void compute(uint64_t ns) {
  uint64_t end = upcall_now() + ns;
  while (upcall_now() < end) {
  }
}

/* --- the client: ns a round */
static double send_for(upcall_driver* driver, struct device* device, size_t size, uint64_t length) {
  static unsigned char data[largest];
  struct message message = {data, size};
  uint64_t begin = upcall_now(), now = begin;
  long rounds = 0;
  for (; now - begin < length || !rounds; ++rounds, now = upcall_now()) {
    memset(data, (int)(rounds + 1), 64 < size ? 64 : size);
    data[size - 1] = (unsigned char)rounds;
    upcall_request request;
    memset(&request, 0, sizeof request);
    request.data = &message;
    int error = upcall_submit(driver, &request);
    if (error) stop("upcall_submit", error);
    compute((uint64_t)compute_us * 1000);
    error = upcall_wait(&request, UPCALL_FOREVER);
    if (error) stop("upcall_wait", error);
    if (request.result != (int64_t)size || memcmp(device->buffer, data, size) != 0) {
      fputs("submission: another message has arrived\n", stderr);
      exit(1);
    }
  }
  return (double)(now - begin) / (double)rounds;
}

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void* measure(void* argument) {
  uint64_t length = (uint64_t)milliseconds * 1000000;
  static struct device device;
  upcall_driver* driver[2];
  for (unsigned later = 0; later < 2; ++later) {
    upcall_driver_ops ops;
    memset(&ops, 0, sizeof ops);
    ops.size = sizeof ops;
    ops.name = later ? "by the poller" : "by the sender";
    ops.submit = submit;
    ops.poll = poll_one;
    ops.cancel = cancel;
    ops.depth = 1;
    ops.flags = later ? UPCALL_SUBMIT_LATER : 0;
    int error = upcall_driver_register(&driver[later], &ops, &device);
    if (error) stop("upcall_driver_register", error);
  }
  printf("us a round (%ld of them computing)\n", compute_us);
  puts("\n   bytes   by the sender    by the poller    gain");
  for (size_t size = 64; size <= largest; size *= 4) {
    double took[2][runs];
    for (int run = 0; run < runs; ++run)
      for (int later = 0; later < 2; ++later)
        took[later][run] = send_for(driver[later], &device, size, length) / 1000;
    for (int later = 0; later < 2; ++later) qsort(took[later], runs, sizeof(double), by_value);
    double here = took[0][runs / 2], there = took[1][runs / 2];
    printf("%8zu %8.1f (%.1f-%.1f) %8.1f (%.1f-%.1f) %+6.1f\n", size, here, took[0][0], took[0][runs - 1],
           there, took[1][0], took[1][runs - 1], here - there);
    fflush(stdout);
  }
  for (int later = 0; later < 2; ++later) upcall_driver_unregister(driver[later]);
  return argument;
}

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--milliseconds") == 0)
      milliseconds = atol(argv[i + 1]);
    else if (strcmp(argv[i], "--compute") == 0)
      compute_us = atol(argv[i + 1]);
    else
      milliseconds = 0;
  }
  if (argc % 2 == 0 || milliseconds < 1 || milliseconds > 10000 || compute_us < 1 || compute_us > 100000) {
    fputs("usage: submission [--milliseconds N] [--compute US]: N (1 to 10000) for each figure\n", stderr);
    return 2;
  }
  pthread_t thread;
  int error = pthread_create(&thread, NULL, measure, NULL);
  if (error) stop("pthread_create", error);
  pthread_join(thread, NULL);
  return 0;
}
