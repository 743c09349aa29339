// An HTTP/1.1 server with a thread for each connection and nothing but calls that block: `GET /N` answers the first N
// bytes of a file, any number of times on one connection, also to requests sent ahead. SIGTERM ends it: no further
// connections, those that are open are shut, and their threads are waited for.
//
// usage: http_threads PORT_FILE FILE     a line `PORT PID` in PORT_FILE says that it listens
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { descriptors = 16384, largest = 4 << 20 };

static char body[largest];
static size_t body_size;
static int listener;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static char is_open[descriptors];
static long open_now, connections, requests;

static void stop(int number) {
  (void)number;
  shutdown(listener, SHUT_RD);  // accept fails from now on
}

static int write_all(int fd, struct iovec* part, int parts) {
  while (parts > 0) {
    ssize_t done = writev(fd, part, parts);
    if (done < 0) return -1;
    for (; parts > 0 && (size_t)done >= part->iov_len; ++part, --parts) done -= (ssize_t)part->iov_len;
    if (parts > 0) part->iov_base = (char*)part->iov_base + done, part->iov_len -= (size_t)done;
  }
  return 0;
}

static int answer(int fd, const char* request) {
  char head[128], *rest;
  size_t size = 0;
  const char* status = "404 Not Found";
  if (strncmp(request, "GET /", 5) == 0) {
    unsigned long wanted = strtoul(request + 5, &rest, 10);
    if (rest != request + 5 && *rest == ' ' && wanted <= body_size) status = "200 OK", size = wanted;
  }
  int length = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", status, size);
  struct iovec parts[2] = {{head, (size_t)length}, {body, size}};
  return write_all(fd, parts, size ? 2 : 1);
}

static void* serve(void* argument) {
  int fd = (int)(long)argument;
  char buffer[8192];
  size_t filled = 0;
  long answered = 0;
  for (;;) {
    ssize_t got = read(fd, buffer + filled, sizeof buffer - 1 - filled);
    if (got <= 0) break;
    filled += (size_t)got;
    buffer[filled] = 0;
    char *next = buffer, *end;
    while ((end = strstr(next, "\r\n\r\n")) != NULL) {
      if (answer(fd, next) != 0) goto out;
      ++answered;
      next = end + 4;
    }
    filled -= (size_t)(next - buffer);
    memmove(buffer, next, filled);
  }
out:
  pthread_mutex_lock(&lock);
  is_open[fd] = 0;
  requests += answered;
  close(fd);  // under the lock: stop_all must not shut another file of this number
  if (--open_now == 0) pthread_cond_signal(&ended);
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void start(int fd, const pthread_attr_t* detached) {
  int one = 1;
  if (fd >= descriptors) errx(1, "descriptor %d is too large", fd);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  pthread_mutex_lock(&lock);
  is_open[fd] = 1;
  ++open_now, ++connections;
  pthread_mutex_unlock(&lock);
  pthread_t thread;
  int error = pthread_create(&thread, detached, serve, (void*)(long)fd);
  if (error) errno = error, err(1, "pthread_create, %ld connections", open_now);
}

static void stop_all(void) {
  pthread_mutex_lock(&lock);
  for (int fd = 0; fd < descriptors; ++fd)
    if (is_open[fd]) shutdown(fd, SHUT_RDWR);
  while (open_now > 0) pthread_cond_wait(&ended, &lock);
  pthread_mutex_unlock(&lock);
}

static void announce(const char* name) {
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  if (getsockname(listener, (struct sockaddr*)&address, &size) != 0) err(1, "getsockname");
  FILE* file = fopen(name, "w");
  if (file == NULL) err(1, "%s", name);
  fprintf(file, "%d %d\n", ntohs(address.sin_port), (int)getpid());
  if (fclose(file) != 0) err(1, "%s", name);
}

int main(int argc, char** argv) {
  if (argc != 3) errx(2, "usage: http_threads PORT_FILE FILE");
  FILE* file = fopen(argv[2], "r");
  if (file == NULL) err(1, "%s", argv[2]);
  body_size = fread(body, 1, sizeof body, file);
  fclose(file);

  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  listener = socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0 || bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 4096) != 0)
    err(1, "cannot listen");
  struct sigaction action = {.sa_handler = stop};
  sigaction(SIGTERM, &action, NULL);
  signal(SIGPIPE, SIG_IGN);
  announce(argv[1]);

  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  for (;;) {
    int fd = accept(listener, NULL, NULL);
    if (fd >= 0)
      start(fd, &detached);
    else if (errno == EINVAL)
      break;
    else if (errno != EINTR && errno != ECONNABORTED)
      err(1, "accept");
  }
  stop_all();
  printf("%ld connections, %ld requests\n", connections, requests);
  return 0;
}
