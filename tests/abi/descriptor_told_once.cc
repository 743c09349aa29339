// abi: threads=0 bound=1 descriptors=events
// Files whose poll(2) tells each change once, and to one caller: the runtime must not be that caller. As root: a mount
// changes /proc/self/mountinfo.
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/select.h>

#include "descriptor.h"

namespace {

int changes_file() {
  const int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  std::vector<char> much(1 << 16);
  while (read(fd, much.data(), much.size()) > 0) {
  }
  return fd;
}

// In a child, which has its own table of mounts.
template <class F>
void told(F wait) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0) _exit(77);
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(77);
    const int fd = changes_file();
    const pthread_t waits = start([&] { wait(fd); });
    nap(50 * kMs);
    if (mount("none", "/mnt", "tmpfs", 0, nullptr) != 0) _exit(77);
    join(waits);
    _exit(0);
  }
  const int status = wait_status(child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip("may not mount anything");
  CHECK_EQ(status, 0);
}

void by_poll(int fd) {
  pollfd asked = {fd, POLLPRI, 0};
  CHECK_EQ(poll(&asked, 1, 10'000), 1);
  CHECK_EQ(asked.revents, POLLPRI | POLLERR);
}

void by_select(int fd) {
  fd_set others;
  FD_ZERO(&others);
  FD_SET(fd, &others);
  timeval time = {10, 0};
  CHECK_EQ(select(fd + 1, nullptr, nullptr, &others, &time), 1);
}

int epoll_of(int fd) {
  const int at = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLPRI;
  CHECK_EQ(epoll_ctl(at, EPOLL_CTL_ADD, fd, &event), 0);
  return at;
}

void by_epoll(int fd) {
  epoll_event event = {};
  CHECK_EQ(epoll_wait(epoll_of(fd), &event, 1, 10'000), 1);
  CHECK_EQ(event.events, static_cast<uint32_t>(EPOLLPRI | EPOLLERR));
}

// It comes to an instance that a thread waits for, and that has had others only.
void added_later(int fd) {
  const Pair p = pipe_pair();
  const int at = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLIN;
  CHECK_EQ(epoll_ctl(at, EPOLL_CTL_ADD, p.a, &event), 0);
  const pthread_t waits = start([=] {
    epoll_event told = {};
    CHECK_EQ(epoll_wait(at, &told, 1, 10'000), 1);
    CHECK_EQ(told.events, static_cast<uint32_t>(EPOLLPRI | EPOLLERR));
  });
  nap(10 * kMs);
  event.events = EPOLLPRI;
  CHECK_EQ(epoll_ctl(at, EPOLL_CTL_ADD, fd, &event), 0);
  join(waits);
}

}  // namespace

int main() {
  for (const auto wait : {by_poll, by_select, by_epoll, added_later}) told(wait);
}
