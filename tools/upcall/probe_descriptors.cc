// `upcall doctor`: what threads need that wait for descriptors without a kernel thread. Each thing is tried.
#include <fmt/format.h>
#include <linux/io_uring.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "doctor.h"

namespace upcall::tool {
namespace {

using Level = Finding::Level;

// 0, or why a pipe cannot be read without blocking.
int try_pipe(int epoll) {
  int ends[2];
  if (pipe(ends) != 0) return errno;
  char byte = 0;
  iovec to = {&byte, 1};
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLET;
  int refused = epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) != 0 ? errno : 0;
  if (refused == 0 && preadv2(ends[0], &to, 1, -1, RWF_NOWAIT) < 0 && errno != EAGAIN) refused = errno;
  close(ends[0]);
  close(ends[1]);
  return refused;
}

Finding probe_epoll() {
  Finding f = {Level::good, "descriptor events", "",
               "threads wait for sockets and pipes without a kernel thread", ""};
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) {
    f.level = Level::note;
    f.found = fmt::format("epoll_create1(2) is refused ({})", strerror(errno));
    f.used = "calls on descriptors block in the kernel";
    f.cost = "a kernel thread for each thread that waits in one";
    return f;
  }
  int refused = try_pipe(epoll);
  close(epoll);
  f.found = "epoll works";
  if (refused == 0) {
    f.found += ", pipes can be read without waiting";
    return f;
  }
  f.level = Level::note;
  f.found += fmt::format(", pipes cannot be read without waiting ({})", strerror(refused));
  f.used = "threads wait for sockets without a kernel thread";
  f.cost = "one for each thread that waits for a pipe";
  return f;
}

Finding probe_ring() {
  Finding f = {Level::good, "io_uring", "", "connect(2) begins without waiting", ""};
  io_uring_params parameters = {};
  long fd = syscall(SYS_io_uring_setup, 2, &parameters);
  int refused = fd < 0 ? errno : 0;
  if (fd >= 0) close(static_cast<int>(fd));
  // As src/event/ring.cc.
  constexpr uint32_t needed = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL;
  bool filtered = prctl(PR_GET_SECCOMP) != 0;
  if (fd >= 0 && !filtered && (parameters.features & needed) == needed) {
    f.found = "works";
    return f;
  }
  f.level = Level::note;
  if (fd < 0)
    f.found = refused == ENOSYS
                  ? "this kernel has none"
                  : fmt::format("refused ({}): kernel.io_uring_disabled, or a filter", strerror(refused));
  else
    f.found = filtered ? "not used under a seccomp filter, which would not see what it does" : "too old";
  f.used = "connect(2) blocks in the kernel";
  f.cost = "a kernel thread for each thread that connects";
  return f;
}

}  // namespace

std::vector<Finding> probe_descriptors() { return {probe_epoll(), probe_ring()}; }

}  // namespace upcall::tool
