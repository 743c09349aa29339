// Memory of a suspended thread: what the process holds for it, and what the kernel holds beside.
//
// The figure is put together from parts that other processes hardly touch:
// - process: VmRSS, VmSwap, HugetlbPages and VmPTE (page tables of all levels) of this process, exact;
// - kernel: KernelStack and SUnreclaim (task_struct, vm_area_struct and the like) of the whole system. Other
//   processes change them by some megabytes at most, about a hundred bytes a thread. What idle time alone changes
//   is measured too and given as `kernel_drift`.
//
// Beside it, `available`: the fall of free memory as the whole machine sees it, which is the same to about 0.1 % when
// nothing else happens, and follows every compiler that starts or ends when something does. The fall of MemAvailable
// alone is neither (see listed_memory).
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"

// Bytes.
struct memory_state {
  double process;
  double kernel;
  double available;  // MemAvailable and `listed`
  double listed;
  bool quiet;  // nobody else was changing `available`
};

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate = PTHREAD_COND_INITIALIZER;
static pthread_cond_t arrival = PTHREAD_COND_INITIALIZER;
static bool gate_open;
static long waiting;
static long expected_waiting;

static void* wait_at_gate(void* argument) {
  pthread_mutex_lock(&gate_lock);
  if (++waiting == expected_waiting) pthread_cond_signal(&arrival);
  while (!gate_open) pthread_cond_wait(&gate, &gate_lock);
  --waiting;
  pthread_mutex_unlock(&gate_lock);
  return argument;
}

// Sum of the lines `NAME: N kB` of a file of /proc, in bytes. A missing line counts as 0, if it may be missing. Works
// without memory of its own.
static double sum_fields(const char* path, const char* const* names, bool must_exist) {
  static char text[16384];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? -1 : read(fd, text + 1, sizeof text - 2);
  EXPECT(length > 0, "memory: %s: %s", path, strerror(errno));
  close(fd);
  text[0] = '\n';
  text[1 + length] = '\0';
  double kilobytes = 0;
  for (; *names != NULL; ++names) {
    char line[32];
    snprintf(line, sizeof line, "\n%s:", *names);
    const char* found = strstr(text, line);
    EXPECT(found != NULL || !must_exist, "memory: no %s in %s", *names, path);
    if (found != NULL) kilobytes += strtod(found + strlen(line), NULL);
  }
  return kilobytes * 1024;
}

// Pages on the kernel's per-CPU lists, bytes. They are free, but counted neither in MemFree nor in MemAvailable: a
// process that ends leaves hundreds of megabytes there, the next one takes its pages from there, and MemAvailable
// falls by so much less.
static double listed_memory(void) {
  FILE* file = fopen("/proc/zoneinfo", "re");
  if (file == NULL) return 0;
  char line[256];
  double pages = 0;
  long count;
  bool in_lists = false;
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "Node ", 5) == 0) in_lists = false;
    if (strstr(line, "pagesets") != NULL) in_lists = true;
    if (in_lists && sscanf(line, " count: %ld", &count) == 1) pages += (double)count;
  }
  fclose(file);
  return pages * (double)sysconf(_SC_PAGESIZE);
}

static struct memory_state look(void) {
  static const char* const own[] = {"VmRSS", "VmSwap", "HugetlbPages", "VmPTE", NULL};
  static const char* const kernels[] = {"KernelStack", "SUnreclaim", NULL};
  static const char* const available[] = {"MemAvailable", NULL};
  double listed = listed_memory();
  return (struct memory_state){.process = sum_fields("/proc/self/status", own, false),
                               .kernel = sum_fields("/proc/meminfo", kernels, true),
                               .available = sum_fields("/proc/meminfo", available, true) + listed,
                               .listed = listed};
}

static void sleep_ms(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&t, &t) != 0 && errno == EINTR) {
  }
}

static bool near(double a, double b, double distance) { return a - b <= distance && b - a <= distance; }

// The state once it holds still: three looks in a row agree. The kernel gives back the threads of an earlier process
// for up to seconds after its end, so that is waited for longer than for other processes to be quiet.
static struct memory_state settled(void) {
  enum { STEP_MS = 60, QUIET_LOOKS = 25, LOOKS = 170 };
  const double kernel_still = 256 * 1024, available_still = 4 << 20;
  struct memory_state last = look();
  int still = 0, quiet = 0;
  for (int i = 0; i < LOOKS; ++i) {
    sleep_ms(STEP_MS);
    struct memory_state now_seen = look();
    still = near(now_seen.kernel, last.kernel, kernel_still) ? still + 1 : 0;
    quiet = near(now_seen.available, last.available, available_still) ? quiet + 1 : 0;
    last = now_seen;
    if (still >= 3 && (quiet >= 3 || i >= QUIET_LOOKS)) break;
  }
  last.quiet = quiet >= 3;
  return last;
}

struct result memory(const struct options* options) {
  long count = thread_count(options, 30000);
  // Fewer would drown in what other programs do meanwhile.
  if (options->count == 0 && count < 10000) count = 10000;
  pthread_t* threads = calloc((size_t)count, sizeof *threads);
  EXPECT(threads != NULL, "memory: out of memory");
  for (long i = 0; i < count; ++i) threads[i] = (pthread_t)i + 1;  // touched before the measurement
  struct memory_state before = settled();
  uint64_t begin = now();
  long made = 0;
  int error = 0;
  for (; made < count; ++made) {
    error = pthread_create(&threads[made], NULL, wait_at_gate, (void*)(intptr_t)(made + 1));
    if (error != 0) break;
  }
  pthread_mutex_lock(&gate_lock);
  expected_waiting = made;
  while (waiting < made) pthread_cond_wait(&arrival, &gate_lock);
  pthread_mutex_unlock(&gate_lock);
  long took_ms = (long)((now() - begin) / 1000000);
  struct memory_state after = settled();
  sleep_ms(took_ms < 1000 ? took_ms : 1000);
  double drift = look().kernel - after.kernel;
  pthread_mutex_lock(&gate_lock);
  gate_open = true;
  pthread_cond_broadcast(&gate);
  pthread_mutex_unlock(&gate_lock);
  for (long i = 0; i < made; ++i) {
    void* back = join_thread(threads[i]);
    EXPECT(back == (void*)(intptr_t)(i + 1), "memory: thread %ld returned %p", i, back);
  }
  EXPECT(waiting == 0, "memory: %ld threads still waiting", waiting);
  if (error != 0) FAIL(LIMIT, "%ld threads, then pthread_create: %s", made, strerror(error));
  free(threads);
  double process = (after.process - before.process) / (double)count;
  double kernel = (after.kernel - before.kernel) / (double)count;
  return (struct result){.value = process + kernel,
                         .count = count,
                         .details = {{"process", process},
                                     {"kernel", kernel},
                                     {"kernel_drift", drift / (double)count},
                                     {"available", (before.available - after.available) / (double)count},
                                     {"listed", (before.listed - after.listed) / (double)count},
                                     {"quiet", before.quiet && after.quiet}}};
}
