// The program under test of a benchmark with two processes. This side, the client, runs on kernel threads and on a CPU of its
// own; it starts the other, pinned to the CPUs it is given, waits for its address and ends it by closing its input.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "worker.h"

enum { COMPANION_SECONDS = 110, COMPANION_FD = 3 };

struct companion {
  pid_t pid;
  int input;  // closed: it is to end
  FILE* output;
  char address[64];  // a TCP port of 127.0.0.1, or '@' and the name of an abstract Unix socket
  char runtime[64];  // "kernel", "upcall", or a peer's: "go1.19.8"
};

// Runs `options->server` with `words` (up to a null pointer) behind it; `fd`, if it is not negative, is its descriptor
// COMPANION_FD. Waits for its line "ADDRESS RUNTIME". From here on the whole process ends after COMPANION_SECONDS.
void start_companion(struct companion* c, const struct options* options, const char* const* words, int fd);
// Connected, blocking, without delay.
int connect_companion(struct companion* c);
// CPU time used so far by all its kernel threads, ns.
uint64_t companion_cpu(const struct companion* c);
// Ends this process with a message; a companion that has met a limit of the system says so itself.
void companion_lost(struct companion* c, const char* what);
// Waits until it has ended well. The number on its last line, 0 if there is none.
double end_companion(struct companion* c);

// In a child just forked: it is killed when its parent ends.
void end_with_parent(pid_t parent);
// Pins the calling thread to a list of CPUs as in "0,2".
void pin_to(const char* cpus);
// Allows this process and its children so many descriptors.
void allow_descriptors(long count);
// A round trip of the same bytes, blocking.
void exchange(struct companion* c, int fd, uint32_t value);
