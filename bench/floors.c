// What nothing can be faster than: a procedure call, a system call.
#include <sys/syscall.h>
#include <unistd.h>

#include "worker.h"

enum { CHUNK = 1000 };

static int marker;

static void* identity(void* argument) { return argument; }

// Returns the calls made; *elapsed in ns.
static long repeat(long (*chunk)(void), const struct options* options, uint64_t* elapsed) {
  // Some runtimes begin their work with the first thread.
  EXPECT(join_thread(start_thread(identity, &marker)) == &marker, "wrong thread joined");
  chunk();
  long done = 0;
  uint64_t begin = now();
  do {
    done += chunk();
    *elapsed = now() - begin;
  } while (*elapsed < duration(options));
  return done;
}

static long by_getppid(void) {
  pid_t first = getppid();
  for (int i = 1; i < CHUNK; ++i) EXPECT(getppid() == first, "getppid: the parent changed");
  return CHUNK;
}

static long by_syscall(void) {
  long first = syscall(SYS_getppid);
  for (int i = 1; i < CHUNK; ++i) EXPECT(syscall(SYS_getppid) == first, "getppid: the parent changed");
  return CHUNK;
}

// The assembly keeps compilers from knowing the result, so that the call stays a call.
static __attribute__((noinline)) long procedure(long value) {
  __asm__ volatile("" : "+r"(value));
  return value + 1;
}

static long by_call(void) {
  long value = 0;
  for (int i = 0; i < CHUNK; ++i) value = procedure(value);
  EXPECT(value == CHUNK, "procedure: %ld, not %d", value, CHUNK);
  return CHUNK;
}

static struct result measure(long (*chunk)(void), const struct options* options) {
  uint64_t elapsed;
  long done = repeat(chunk, options, &elapsed);
  return (struct result){.value = (double)elapsed / (double)done, .count = done};
}

struct result syscall_overhead(const struct options* options) {
  return measure(by_getppid, options);
}
struct result syscall_function(const struct options* options) {
  return measure(by_syscall, options);
}
struct result floor_call(const struct options* options) {
  return measure(by_call, options);
}
