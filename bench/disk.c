// Random reads of 4 KiB from a file, by 64 threads with plain pread; with --fio FILE by fio's io_uring engine instead.
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "companion.h"
#include "stall.h"

enum {
  BLOCK = 4096,
  READERS = 64,
  FULL_BLOCKS = 32768,
  FEWEST_BLOCKS = 2048,
  MOST_BLOCKS = 262144,
  PIECE = 64,
  CLOCK_EVERY = 64
};

static struct {
  int fd;
  uint32_t blocks;
  uint32_t* order;  // each block once, at random
  bool direct;      // the page cache cannot be emptied, and is gone around
  uint64_t until;   // 0: until each block has been read
  _Atomic uint32_t next;
  _Atomic uint64_t begin, end;
  pthread_barrier_t start;
} disk;

static uint64_t content(uint64_t block) { return (block + 1) * 0x9e3779b97f4a7c15u; }

// A file without a name, which is gone with this process, on the disk itself.
static void make_file(void) {
  const char* folder = getenv("TMPDIR");
  if (folder == NULL || *folder == '\0') folder = "/var/tmp";
  disk.fd = open(folder, O_TMPFILE | O_RDWR, 0600);
  if (disk.fd < 0) FAIL(LIMIT, "cannot make a file in %s: %s", folder, strerror(errno));
  struct statfs system;
  EXPECT(fstatfs(disk.fd, &system) == 0, "fstatfs: %s", strerror(errno));
  if (system.f_type == TMPFS_MAGIC) FAIL(LIMIT, "%s is in memory; TMPDIR names a folder on a disk", folder);
  uint64_t* piece = aligned_alloc(BLOCK, (size_t)PIECE * BLOCK);
  disk.order = calloc(disk.blocks, sizeof *disk.order);
  EXPECT(piece != NULL && disk.order != NULL, "no memory");
  memset(piece, 0, (size_t)PIECE * BLOCK);
  for (uint32_t i = 0; i < disk.blocks; i += PIECE) {
    for (uint32_t k = 0; k < PIECE; ++k) piece[k * (BLOCK / 8)] = content(i + k);
    ssize_t written = write(disk.fd, piece, (size_t)PIECE * BLOCK);
    if (written != (ssize_t)PIECE * BLOCK) FAIL(LIMIT, "cannot write to %s: %s", folder, strerror(errno));
  }
  free(piece);
  EXPECT(fsync(disk.fd) == 0, "fsync: %s", strerror(errno));
  uint64_t random = 88172645463325252u;
  for (uint32_t i = 0; i < disk.blocks; ++i) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    uint32_t k = (uint32_t)(random % (i + 1));
    disk.order[i] = disk.order[k];
    disk.order[k] = i;
  }
}

static double resident_share(void) {
  size_t bytes = (size_t)disk.blocks * BLOCK;
  unsigned char* pages = malloc(disk.blocks);
  void* area = mmap(NULL, bytes, PROT_READ, MAP_SHARED, disk.fd, 0);
  EXPECT(pages != NULL && area != MAP_FAILED && mincore(area, bytes, pages) == 0, "mincore: %s",
         strerror(errno));
  uint32_t resident = 0;
  for (uint32_t i = 0; i < disk.blocks; ++i) resident += pages[i] & 1u;
  munmap(area, bytes);
  free(pages);
  return (double)resident / disk.blocks;
}

static void reopen_direct(void) {
  char name[40];
  snprintf(name, sizeof name, "/proc/self/fd/%d", disk.fd);
  int fd = open(name, O_RDONLY | O_DIRECT);
  if (fd < 0)
    FAIL(LIMIT, "cannot go around the page cache of this file system: O_DIRECT: %s", strerror(errno));
  close(disk.fd);
  disk.fd = fd;
  disk.direct = true;
}

// Returns what is in the page cache when the reading begins.
static double empty_cache(void) {
  posix_fadvise(disk.fd, 0, 0, POSIX_FADV_RANDOM);  // no reading ahead
  double resident = 1;
  for (int i = 0; i < 3 && resident > 0.01; ++i) {
    posix_fadvise(disk.fd, 0, 0, POSIX_FADV_DONTNEED);
    resident = resident_share();
  }
  if (resident > 0.01) reopen_direct();
  return resident;
}

static void read_block(uint32_t block, void* buffer) {
  ssize_t got = pread(disk.fd, buffer, BLOCK, (off_t)block * BLOCK);
  EXPECT(got == BLOCK && *(uint64_t*)buffer == content(block), "wrong content of block %u: %zd bytes, %s",
         block, got, got < 0 ? strerror(errno) : "no error");
}

// Reads until all have been read, or the time has passed; returns how many.
static uint64_t read_blocks(void* buffer) {
  uint64_t done = 0;
  for (;; ++done) {
    uint32_t i = atomic_fetch_add_explicit(&disk.next, 1, memory_order_relaxed);
    if (disk.until == 0 ? i >= disk.blocks : done % CLOCK_EVERY == 0 && now() > disk.until) return done;
    read_block(disk.order[i % disk.blocks], buffer);
  }
}

static void* reader(void* argument) {
  void* buffer = aligned_alloc(BLOCK, BLOCK);
  EXPECT(buffer != NULL, "no memory");
  pthread_barrier_wait(&disk.start);
  uint64_t begin = now(), none = 0;
  atomic_compare_exchange_strong(&disk.begin, &none, begin);
  *(uint64_t*)argument = read_blocks(buffer);
  uint64_t end = now(), latest = atomic_load(&disk.end);
  while (latest < end && !atomic_compare_exchange_weak(&disk.end, &latest, end)) {
  }
  free(buffer);
  return argument;
}

// ns for each read of all threads together.
static double read_by_threads(long* count) {
  pthread_t threads[READERS];
  static uint64_t done[READERS];
  pthread_barrier_init(&disk.start, NULL, READERS);
  disk.next = 0;
  for (int i = 0; i < READERS; ++i) threads[i] = start_thread(reader, &done[i]);
  *count = 0;
  for (int i = 0; i < READERS; ++i) {
    EXPECT(join_thread(threads[i]) == &done[i], "wrong thread joined");
    *count += (long)done[i];
  }
  return (double)(disk.end - disk.begin) / (double)*count;
}

// ns for each read of a loop in the calling thread.
static double read_alone(uint64_t length) {
  void* buffer = aligned_alloc(BLOCK, BLOCK);
  EXPECT(buffer != NULL, "no memory");
  uint64_t begin = now();
  disk.next = 0;
  disk.until = begin + length;
  uint64_t done = read_blocks(buffer);
  free(buffer);
  return (double)(now() - begin) / (double)done;
}

static char fio_version[32];

// Reads a second.
static double read_by_fio(const struct options* options, bool cold) {
  char size[32], name[32], direct[16], invalidate[32], runtime[32];
  snprintf(size, sizeof size, "--size=%llu", (unsigned long long)disk.blocks * BLOCK);
  snprintf(name, sizeof name, "--filename=/proc/self/fd/%d", COMPANION_FD);
  snprintf(direct, sizeof direct, "--direct=%d", disk.direct);
  snprintf(invalidate, sizeof invalidate, "--invalidate=%d", cold);
  snprintf(runtime, sizeof runtime, "--runtime=%llums", (unsigned long long)duration(options) / 1000000 + 1);
  char* const arguments[] = {(char*)options->fio,
                             "--name=disk",
                             name,
                             size,
                             direct,
                             invalidate,
                             "--ioengine=io_uring",
                             "--iodepth=64",
                             "--rw=randread",
                             "--bs=4k",
                             "--thread=1",
                             "--gtod_reduce=1",
                             "--fadvise_hint=random",
                             "--output-format=terse",
                             "--terse-version=3",
                             cold ? NULL : runtime,
                             "--time_based",
                             NULL};
  int out[2];
  EXPECT(pipe2(out, O_CLOEXEC) == 0, "pipe: %s", strerror(errno));
  pid_t parent = getpid(), child = fork();
  EXPECT(child >= 0, "fork: %s", strerror(errno));
  if (child == 0) {
    end_with_parent(parent);
    dup2(out[1], STDOUT_FILENO);
    dup2(disk.fd, COMPANION_FD);
    execv(arguments[0], arguments);
    FAIL(WRONG, "cannot start %s: %s", arguments[0], strerror(errno));
  }
  close(out[1]);
  char text[4096] = "";
  size_t length = 0;
  for (ssize_t n;
       length < sizeof text - 1 && (n = read(out[0], text + length, sizeof text - 1 - length)) > 0;)
    length += (size_t)n;
  int status;
  EXPECT(waitpid(child, &status, 0) == child && status == 0, "fio: wait status 0x%x", (unsigned)status);
  // 3;fio-3.33;disk;0;ERROR;KiB;KiB/s;IOPS;...
  char* field = strstr(text, "3;fio");
  for (int i = 0; field != NULL && i < 7; ++i) field = strchr(field + (i > 0), ';');
  EXPECT(field != NULL && atof(field + 1) > 0 && sscanf(text, "3;%31[^;]", fio_version) == 1,
         "fio said '%.60s'", text);
  return atof(field + 1);
}

static void begin_disk(const struct options* options) {
  double blocks = FULL_BLOCKS * options->scale;
  if (blocks < FEWEST_BLOCKS) blocks = FEWEST_BLOCKS;
  if (blocks > MOST_BLOCKS) blocks = MOST_BLOCKS;
  disk.blocks = (uint32_t)blocks / PIECE * PIECE;
  make_file();
}

// Each block once, from the disk.
static struct result read_all(const struct options* options, double resident) {
  struct result result = {.count = disk.blocks,
                          .details = {{"direct", disk.direct}, {"resident_percent", 100 * resident}}};
  if (options->fio != NULL) {
    result.value = read_by_fio(options, true);
    result.runtime = fio_version;
    return result;
  }
  result.value = 1e9 / read_by_threads(&result.count);
  EXPECT(result.count == (long)disk.blocks, "%ld of %u blocks were read", result.count, disk.blocks);
  return result;
}

struct result disk_cold(const struct options* options) {
  begin_disk(options);
  return read_all(options, empty_cache());
}

struct result disk_direct(const struct options* options) {
  begin_disk(options);
  reopen_direct();
  return read_all(options, 0);
}

struct result disk_warm(const struct options* options) {
  begin_disk(options);
  uint64_t length = duration(options);
  void* buffer = aligned_alloc(BLOCK, BLOCK);
  EXPECT(buffer != NULL, "no memory");
  for (uint32_t i = 0; i < disk.blocks; ++i) read_block(i, buffer);
  free(buffer);
  if (options->fio != NULL)
    return (struct result){
        .value = 1e9 / read_by_fio(options, false), .count = disk.blocks, .runtime = fio_version};
  // Before the first thread, when no runtime has begun its work.
  double bare = read_alone(length);
  long count;
  disk.until = now() + length;
  double each = read_by_threads(&count);
  double alone = read_alone(length);
  return (struct result){
      .value = each, .count = count, .details = {{"bare_ns", bare}, {"one_thread_ns", alone}}};
}
