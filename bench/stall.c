#include "stall.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"

int fault_fd = -1;
char* fault_area;
pid_t helper;

static int request[2], reply[2];

void nap(uint64_t ns) {
  struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  while (nanosleep(&t, &t) != 0 && errno == EINTR) {
  }
}

void open_fault_area(long pages) {
  fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
  if (fault_fd < 0) FAIL(LIMIT, "userfaultfd: %s", strerror(errno));
  struct uffdio_api api = {.api = UFFD_API};
  EXPECT(ioctl(fault_fd, UFFDIO_API, &api) == 0, "userfaultfd: %s", strerror(errno));
  size_t bytes = (size_t)pages * PAGE;
  fault_area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(fault_area != MAP_FAILED, "mmap: %s", strerror(errno));
  struct uffdio_register range = {.range = {(uint64_t)(uintptr_t)fault_area, bytes},
                                  .mode = UFFDIO_REGISTER_MODE_MISSING};
  EXPECT(ioctl(fault_fd, UFFDIO_REGISTER, &range) == 0, "userfaultfd: %s", strerror(errno));
}

// From the helper: the descriptor still means the memory of the process that opened it.
void bring_page(char* page) {
  static char content[PAGE];
  memset(content, 'u', sizeof content);
  struct uffdio_copy copy = {
      .dst = (uint64_t)(uintptr_t)page, .src = (uint64_t)(uintptr_t)content, .len = PAGE};
  if (ioctl(fault_fd, UFFDIO_COPY, &copy) != 0 && errno != EEXIST) _exit(1);
}

void answer_requests(int in, int out) {
  uint64_t asked;
  while (read(in, &asked, sizeof asked) == sizeof asked) {
    nap(STALL_NS);
    if (fault_fd >= 0) {
      bring_page((char*)(uintptr_t)asked);
    } else if (write(out, &asked, sizeof asked) != sizeof asked) {
      _exit(1);
    }
  }
}

void start_answers(void) {
  EXPECT(pipe(request) == 0 && pipe(reply) == 0, "stall: pipe: %s", strerror(errno));
  helper = fork();
  EXPECT(helper >= 0, "stall: fork: %s", strerror(errno));
  if (helper != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  answer_requests(request[0], reply[1]);
  _exit(0);
}

void end_helper(void) {
  kill(helper, SIGKILL);
  waitpid(helper, NULL, 0);
}

static void ask(uint64_t what) {
  EXPECT(write(request[1], &what, sizeof what) == sizeof what, "stall: write: %s", strerror(errno));
}

void block_in_read(int i) {
  uint64_t answer = 0;
  ask((uint64_t)i + 1);
  EXPECT(read(reply[0], &answer, sizeof answer) == sizeof answer && answer == (uint64_t)i + 1,
         "stall: wrong answer");
}

void block_in_fault(int i) {
  char* page = fault_area + (long)i * PAGE;
  ask((uint64_t)(uintptr_t)page);
  EXPECT(*(volatile char*)page == 'u', "stall: wrong page");
}
