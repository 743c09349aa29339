/* A driver for upcall/event.h, complete: reads of a file through io_uring(7).
 *
 *   uring_reads [--threads N] [--reads N] FILE
 *
 * N threads each read N blocks of 4 KiB at random places and compare every one with what pread(2) gives. A thread that waits
 * for its read leaves its processor to the others; whoever has nothing better to do looks at the ring, and if nothing can be
 * gained by looking, one kernel thread waits for it in the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <upcall/event.h>

enum { block = 4096, entries = 256 };

/* --- the device: one ring */
struct ring {
  struct io_uring uring;
  int alarm; /* eventfd that ends a wait */
};

/* What a request asks for: its `data`. */
struct read_of {
  int file;
  void *buffer;
  size_t size;
  off_t at;
};

/* Never called concurrently with poll_group and cancel, so the ring needs no lock. */
static int submit(void *context, upcall_request *request) {
  struct ring *ring = context;
  const struct read_of *what = request->data;
  struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
  if (!sqe) return EAGAIN; /* full: again after the next completion */
  io_uring_prep_read(sqe, what->file, what->buffer, (unsigned)what->size, (uint64_t)what->at);
  io_uring_sqe_set_data(sqe, request);
  io_uring_submit(&ring->uring); /* what the kernel does not take now stays in the ring, for poll_group */
  return 0;
}

/* A load from shared memory if nothing has come: no system call. */
static int poll_group(void *context) {
  struct ring *ring = context;
  struct io_uring_cqe *cqe;
  if (io_uring_sq_ready(&ring->uring)) io_uring_submit(&ring->uring);
  while (io_uring_peek_cqe(&ring->uring, &cqe) == 0) {
    upcall_request *request = io_uring_cqe_get_data(cqe);
    int result = cqe->res;
    io_uring_cqe_seen(&ring->uring, cqe);
    upcall_complete(request, result);
  }
  return 0;
}

/* The ring's descriptor is readable when there are completions. */
static int wait_group(void *context, uint64_t timeout) {
  struct ring *ring = context;
  struct pollfd what[2] = {{ring->uring.ring_fd, POLLIN, 0}, {ring->alarm, POLLIN, 0}};
  struct timespec limit = {(time_t)(timeout / 1000000000), (long)(timeout % 1000000000)};
  if (ppoll(what, 2, timeout == UPCALL_FOREVER ? NULL : &limit, NULL) < 0) return -errno;
  uint64_t times;
  if (what[1].revents && read(ring->alarm, &times, sizeof times) < 0) return -errno;
  return 0;
}

static void wake(void *context) {
  struct ring *ring = context;
  uint64_t one = 1;
  if (write(ring->alarm, &one, sizeof one) < 0) perror("uring_reads: eventfd");
}

static upcall_driver *make_driver(struct ring *ring) {
  int error = io_uring_queue_init(entries, &ring->uring, 0);
  if (error < 0) {
    fprintf(stderr, "uring_reads: io_uring is not to be had here: %s\n", strerror(-error));
    exit(77);
  }
  ring->alarm = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  upcall_driver_ops ops = {
      .size = sizeof ops,
      .name = "io_uring",
      .submit = submit,
      .poll_group = poll_group,
      .wait_group = wait_group,
      .wake = wake,
      .typical = 100000, /* ns: a disk's; later it is measured */
      .depth = entries,
      .flags = UPCALL_WAIT_SEES_NEW, /* new reads end up in the ring that is waited for */
  };
  upcall_driver *driver;
  error = upcall_driver_register(&driver, &ops, ring);
  if (error) {
    fprintf(stderr, "uring_reads: upcall_driver_register: %s\n", strerror(error));
    exit(1);
  }
  return driver;
}

/* --- the program */
static struct {
  upcall_driver *driver;
  int file;
  off_t blocks;
  long reads;
} job;

static void *read_some(void *seed) {
  unsigned state = (unsigned)(uintptr_t)seed;
  char *buffer = malloc(block), *expected = malloc(block);
  for (long i = 0; i < job.reads; ++i) {
    struct read_of what = {job.file, buffer, block, (off_t)(rand_r(&state) % job.blocks) * block};
    upcall_request request = {.data = &what};
    int error = upcall_submit(job.driver, &request);
    if (!error) error = upcall_wait(&request, UPCALL_FOREVER);
    if (error || request.result != block || pread(job.file, expected, block, what.at) != block ||
        memcmp(buffer, expected, block)) {
      fprintf(stderr, "uring_reads: block at %lld: %s\n", (long long)what.at,
              error ? strerror(error) : request.result < 0 ? strerror((int)-request.result) : "wrong data");
      exit(1);
    }
  }
  free(buffer);
  free(expected);
  return NULL;
}

static long number(const char *text, const char *option) {
  char *end;
  long n = strtol(text, &end, 10);
  if (*end || n < 1 || n > 1000000) {
    fprintf(stderr, "uring_reads: %s: '%s' is no number from 1 to 1000000\n", option, text);
    exit(2);
  }
  return n;
}

int main(int argc, char **argv) {
  long threads = 64;
  const char *name = NULL;
  job.reads = 100;
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "--threads") && i + 1 < argc) {
      threads = number(argv[++i], "--threads");
    } else if (!strcmp(argv[i], "--reads") && i + 1 < argc) {
      job.reads = number(argv[++i], "--reads");
    } else if (argv[i][0] != '-' && !name) {
      name = argv[i];
    } else {
      fprintf(stderr, "usage: uring_reads [--threads N] [--reads N] FILE\n");
      return 2;
    }
  }
  struct stat st;
  if (!name || (job.file = open(name, O_RDONLY | O_CLOEXEC)) < 0 || fstat(job.file, &st) || st.st_size < block) {
    fprintf(stderr, "uring_reads: %s: %s\n", name ? name : "no file given",
            name ? (errno ? strerror(errno) : "has less than 4 KiB") : "usage: uring_reads [--threads N] [--reads N] FILE");
    return 2;
  }
  job.blocks = st.st_size / block;
  struct ring ring;
  job.driver = make_driver(&ring);
  pthread_t *thread = calloc((size_t)threads, sizeof *thread);
  for (long i = 0; i < threads; ++i)
    if (pthread_create(&thread[i], NULL, read_some, (void *)(uintptr_t)(i + 1))) {
      fprintf(stderr, "uring_reads: cannot make thread %ld\n", i);
      return 1;
    }
  for (long i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  int error = upcall_driver_unregister(job.driver);
  io_uring_queue_exit(&ring.uring);
  free(thread);
  printf("%ld blocks read by %ld threads\n", threads * job.reads, threads);
  return error ? 1 : 0;
}
