// The programs under test of benchmarks with two processes: threads that block in accept, read and write, and know nothing of
// Upcall. Each prints "ADDRESS RUNTIME" when it is ready, and ends with its standard input.
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "companion.h"
#include "server.h"

enum { STACK_BYTES = 65536, BACKLOG = 4096, MOST_COMPUTING = 4096 };

static void say_ready(const char* address) {
  printf("%s %s\n", address, on_upcall() ? "upcall" : "kernel");
  EXPECT(fflush(stdout) == 0, "cannot write the address: %s", strerror(errno));
}

static void await_end_of_input(void) {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0 || errno == EINTR) errno = 0;
}

static pthread_t start_small_thread(void* (*body)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, body, argument);
  if (error != 0) FAIL(error == EAGAIN ? LIMIT : WRONG, "pthread_create: %s", strerror(error));
  pthread_attr_destroy(&attributes);
  return thread;
}

int listen_on_loopback(int flags, char* text, size_t size) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
  EXPECT(fd >= 0 && bind(fd, (struct sockaddr*)&address, sizeof address) == 0 && listen(fd, BACKLOG) == 0 &&
             getsockname(fd, (struct sockaddr*)&address, &length) == 0,
         "listen: %s", strerror(errno));
  snprintf(text, size, "%u", ntohs(address.sin_port));
  return fd;
}

static int listen_on_unix(char* text, size_t size) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(text, size, "@upcall-bench-%d", (int)getpid());
  size_t length = strlen(text + 1);
  memcpy(address.sun_path + 1, text + 1, length);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t whole = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
  EXPECT(fd >= 0 && bind(fd, (struct sockaddr*)&address, whole) == 0 && listen(fd, BACKLOG) == 0,
         "listen: %s", strerror(errno));
  return fd;
}

// Sends back what comes, until the other side closes.
static void echo(int fd) {
  char buffer[4096];
  for (;;) {
    ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    for (ssize_t sent = 0; sent < got;) {
      ssize_t n = write(fd, buffer + sent, (size_t)(got - sent));
      if (n < 0 && errno != EINTR) return;
      if (n > 0) sent += n;
    }
  }
}

static void* serve_connection(void* argument) {
  int fd = (int)(intptr_t)argument;
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  echo(fd);
  close(fd);
  return NULL;
}

static void* accept_connections(void* argument) {
  int listener = (int)(intptr_t)argument;
  for (;;) {
    int fd = accept(listener, NULL, NULL);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (fd < 0) FAIL(errno == EMFILE || errno == ENFILE ? LIMIT : WRONG, "accept: %s", strerror(errno));
    start_small_thread(serve_connection, (void*)(intptr_t)fd);
  }
}

int serve(void) {
  signal(SIGPIPE, SIG_IGN);
  char address[64];
  int listener = listen_on_loopback(0, address, sizeof address);
  start_small_thread(accept_connections, (void*)(intptr_t)listener);
  say_ready(address);
  await_end_of_input();
  return 0;
}

static _Atomic uint64_t computed[MOST_COMPUTING];

static void* compute(void* argument) {
  _Atomic uint64_t* rounds = (_Atomic uint64_t*)argument;
  for (uint64_t i = 1;; ++i) {
    for (volatile int k = 0; k < 1000; ++k) {
    }
    atomic_store_explicit(rounds, i, memory_order_relaxed);
  }
  return NULL;
}

// `computing` threads for each CPU. The last line says what they have done, in rounds a microsecond.
int serve_reactive(bool tcp, long computing) {
  signal(SIGPIPE, SIG_IGN);
  cpu_set_t cpus;
  EXPECT(sched_getaffinity(0, sizeof cpus, &cpus) == 0, "sched_getaffinity: %s", strerror(errno));
  long count = computing * CPU_COUNT(&cpus);
  if (count > MOST_COMPUTING) FAIL(USAGE, "at most %d computing threads", MOST_COMPUTING);
  char address[64];
  int listener =
      tcp ? listen_on_loopback(0, address, sizeof address) : listen_on_unix(address, sizeof address);
  start_small_thread(accept_connections, (void*)(intptr_t)listener);
  uint64_t begin = now();
  for (long i = 0; i < count; ++i) start_small_thread(compute, (void*)&computed[i]);
  say_ready(address);
  await_end_of_input();
  uint64_t rounds = 0;
  for (long i = 0; i < count; ++i) rounds += atomic_load_explicit(&computed[i], memory_order_relaxed);
  printf("%.6g\n", (double)rounds * 1000 / (double)(now() - begin));
  return 0;
}

static void* echo_companion(void* argument) {
  echo(COMPANION_FD);
  return argument;
}

int serve_pair(void) {
  signal(SIGPIPE, SIG_IGN);
  start_small_thread(echo_companion, NULL);
  say_ready("-");
  await_end_of_input();
  return 0;
}
