// What the worker is when another one is its client: `upcall-bench-worker serve` and the like. Each returns the exit status.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Echo over TCP, a thread for each connection, blocking calls.
int serve(void);
// The same by one thread, epoll and calls that do not block: what a server of this kind can be at best.
int serve_epoll(void);
// An echo server with computing threads beside it.
int serve_reactive(bool tcp, long computing);
// Echo on a descriptor that it has from its client.
int serve_pair(void);

// A listening socket at a free port, whose number is written to `text`.
int listen_on_loopback(int flags, char* text, size_t size);
// Whether the runtime is in this process.
bool on_upcall(void);
