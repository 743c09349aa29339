#include "companion.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stall.h"

enum { MOST_WORDS = 24, END_MS = 20000, LOST_MS = 500 };

static void too_long(int signal) {
  (void)signal;
  static const char text[] = "no end within 110 s\n";
  ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
  (void)ignored;
  _exit(WRONG);
}

void pin_to(const char* cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const char* at = cpus; *at != '\0';) {
    char* end;
    unsigned long cpu = strtoul(at, &end, 10);
    if (end == at || cpu >= CPU_SETSIZE || (*end != ',' && *end != '\0'))
      FAIL(USAGE, "--server-cpus: bad value '%s'; a list such as 1,2 is accepted", cpus);
    CPU_SET(cpu, &set);
    at = *end == ',' ? end + 1 : end;
  }
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    FAIL(LIMIT, "cannot use CPU %s: %s", cpus, strerror(errno));
}

void allow_descriptors(long count) {
  struct rlimit limit;
  EXPECT(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit: %s", strerror(errno));
  rlim_t wanted = (rlim_t)count;
  if (limit.rlim_cur >= wanted) return;
  rlim_t hard = limit.rlim_max;
  limit.rlim_cur = wanted;
  if (limit.rlim_max < wanted) limit.rlim_max = wanted;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    FAIL(LIMIT, "%ld descriptors are needed, RLIMIT_NOFILE allows %ld: %s", count, (long)hard,
         strerror(errno));
}

void end_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(WRONG);
}

static void become(const struct options* options, const char* const* words, int fd, const int in[2],
                   const int out[2], pid_t parent) {
  end_with_parent(parent);
  if (options->server_cpus != NULL) pin_to(options->server_cpus);
  dup2(in[0], STDIN_FILENO);
  dup2(out[1], STDOUT_FILENO);
  if (fd >= 0) dup2(fd, COMPANION_FD);
  static char self[] = "/proc/self/exe";
  char* own[] = {self, NULL};
  char** server = options->server != NULL ? options->server : own;
  char* arguments[MOST_WORDS + 1];
  int count = 0;
  for (; *server != NULL && count < MOST_WORDS; ++server) arguments[count++] = *server;
  for (; *words != NULL && count < MOST_WORDS; ++words) arguments[count++] = (char*)*words;
  arguments[count] = NULL;
  execv(arguments[0], arguments);
  FAIL(WRONG, "cannot start %s: %s", arguments[0], strerror(errno));
}

void start_companion(struct companion* c, const struct options* options, const char* const* words, int fd) {
  int in[2], out[2];
  EXPECT(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "pipe: %s", strerror(errno));
  signal(SIGALRM, too_long);
  signal(SIGPIPE, SIG_IGN);
  alarm(COMPANION_SECONDS);
  pid_t parent = getpid();
  *c = (struct companion){.pid = fork()};
  EXPECT(c->pid >= 0, "fork: %s", strerror(errno));
  if (c->pid == 0) {
    signal(SIGPIPE, SIG_DFL);
    become(options, words, fd, in, out, parent);
  }
  close(in[0]);
  close(out[1]);
  c->input = in[1];
  c->output = fdopen(out[0], "r");
  char line[128];
  EXPECT(c->output != NULL, "fdopen: %s", strerror(errno));
  if (fgets(line, sizeof line, c->output) == NULL) companion_lost(c, "the server ended before it was ready");
  EXPECT(sscanf(line, "%63s %63s", c->address, c->runtime) == 2, "the server said '%s'", line);
}

static int try_connect(const struct companion* c) {
  if (c->address[0] == '@') {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(c->address + 1);
    memcpy(address.sun_path + 1, c->address + 1, length);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    return fd < 0 || connect(fd, (struct sockaddr*)&address, size) == 0 ? fd : -1;
  }
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(c->address)),
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr*)&address, sizeof address) != 0) return -1;
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

int connect_companion(struct companion* c) {
  int fd = try_connect(c);
  if (fd >= 0) return fd;
  char text[80];
  snprintf(text, sizeof text, "connect: %s", strerror(errno));
  companion_lost(c, text);
  return -1;
}

uint64_t companion_cpu(const struct companion* c) {
  clockid_t clock;
  struct timespec t;
  EXPECT(clock_getcpuclockid(c->pid, &clock) == 0 && clock_gettime(clock, &t) == 0, "CPU time of the server");
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// True when it has ended, within `ms`.
static bool await_end(pid_t pid, int ms, int* status) {
  for (; ms > 0; --ms, nap(1000000)) {
    pid_t ended = waitpid(pid, status, WNOHANG);
    EXPECT(ended >= 0 || errno == EINTR, "waitpid: %s", strerror(errno));
    if (ended == pid) return true;
  }
  return false;
}

void companion_lost(struct companion* c, const char* what) {
  int status = 0;
  // Its own message is on standard error.
  if (await_end(c->pid, LOST_MS, &status)) {
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    if (code == LIMIT || code == USAGE) exit(code);
    FAIL(WRONG, "%s; the server has ended, wait status 0x%x", what, (unsigned)status);
  }
  kill(c->pid, SIGKILL);
  waitpid(c->pid, NULL, 0);
  FAIL(WRONG, "%s", what);
}

double end_companion(struct companion* c) {
  int status;
  close(c->input);
  if (!await_end(c->pid, END_MS, &status)) {
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
    FAIL(WRONG, "the server did not end within %d s", END_MS / 1000);
  }
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the server ended with wait status 0x%x",
         (unsigned)status);
  double last = 0;
  if (fscanf(c->output, "%lf", &last) != 1) last = 0;
  fclose(c->output);
  return last;
}

void exchange(struct companion* c, int fd, uint32_t value) {
  uint32_t answer = ~value;
  if (send(fd, &value, sizeof value, MSG_NOSIGNAL) != sizeof value) companion_lost(c, "cannot send");
  // Four bytes come whole.
  ssize_t got = recv(fd, &answer, sizeof answer, 0);
  if (got != sizeof answer) companion_lost(c, "connection lost");
  EXPECT(answer == value, "wrong answer: %u instead of %u", answer, value);
}
