// What a descriptor stands for.
#include <sys/socket.h>
#include <sys/stat.h>

#include <initializer_list>

#include "event/epoll.h"
#include "linux/descriptors.h"

namespace upcall::linux_abi {

namespace {

int socket_option(int fd, int option) noexcept {
  int value = 0;
  uint32_t size = sizeof value;
  return kernel::sys(__NR_getsockopt, fd, SOL_SOCKET, option, &value, &size) ? -1 : value;
}

}  // namespace

FileKind kind_of(Descriptor* d, int fd) noexcept {
  struct stat st;
  if (kernel::sys(__NR_fstat, fd, static_cast<void*>(&st))) return FileKind::unknown;
  d->pipe.store(S_ISFIFO(st.st_mode) ? st.st_ino : 0, relaxed);
  if (S_ISFIFO(st.st_mode)) return activation::g_runtime.pipe_events ? FileKind::pipe : FileKind::other;
  if (!S_ISSOCK(st.st_mode)) return FileKind::other;
  if (socket_option(fd, SO_RCVLOWAT) != 1) return FileKind::other;  // a read waits for more than a byte
  int domain = socket_option(fd, SO_DOMAIN);
  if (domain == AF_UNIX)
    return socket_option(fd, SO_TYPE) == SOCK_DGRAM ? FileKind::datagrams : FileKind::local;
  if (domain != AF_INET && domain != AF_INET6) return FileKind::other;
  constexpr int tcp = 6;
  return socket_option(fd, SO_PROTOCOL) == tcp ? FileKind::tcp : FileKind::socket;
}

namespace {

constexpr int path_room = 40;

// "/proc/self/FOLDER/NUMBER"
void name_in_proc(char (&path)[path_room], const char* folder, int fd) noexcept {
  char digits[12];
  int n = 0;
  for (auto left = static_cast<uint32_t>(fd); n == 0 || left; left /= 10)
    digits[n++] = static_cast<char>('0' + left % 10);
  char* at = path;
  for (const char* part : {"/proc/self/", folder, "/"})
    for (; *part; ++part) *at++ = *part;
  while (n) *at++ = digits[--n];
  *at = 0;
}

bool begins(const char* text, const char* with) noexcept {
  for (; *with; ++text, ++with)
    if (*text != *with) return false;
  return true;
}

// Terminals: of other devices nobody knows.
bool is_terminal(uint64_t device) noexcept {
  uint64_t number = (device >> 8) & 0xfff;
  return number == 4 || number == 5 || (number >= 136 && number <= 143);
}

enum class Anonymous : uint8_t { other, tells_again, epoll };

Anonymous anonymous_kind(int fd) noexcept {
  char path[path_room], link[64];
  name_in_proc(path, "fd", fd);
  long n =
      kernel::sys(__NR_readlink, static_cast<const char*>(path), static_cast<char*>(link), sizeof link - 1);
  if (n <= 0) return Anonymous::other;
  link[n] = 0;
  if (begins(link, "anon_inode:[eventpoll]")) return Anonymous::epoll;
  for (const char* known :
       {"anon_inode:[eventfd]", "anon_inode:[timerfd]", "anon_inode:inotify", "anon_inode:[pidfd]",
        "pidfd:", "anon_inode:[io_uring]", "anon_inode:[userfaultfd]", "anon_inode:[fanotify]"})
    if (begins(link, known)) return Anonymous::tells_again;
  return Anonymous::other;
}

// All that an epoll instance watches: lines "tfd: NUMBER ..." (proc(5)).
bool all_tell_again(int epoll) noexcept {
  char path[path_room];
  name_in_proc(path, "fdinfo", epoll);
  long file = kernel::sys(__NR_openat, -100, static_cast<const char*>(path), 0x80000 /* O_CLOEXEC */, 0);
  if (kernel::is_error(file)) return false;
  char buffer[512];
  bool line_begins = true, all = true;
  int matched = 0, number = -1;  // of "tfd:", then of what follows
  constexpr char mark[] = "tfd:";
  for (long n; all && (n = kernel::sys(__NR_read, file, static_cast<char*>(buffer), sizeof buffer)) > 0;)
    for (long i = 0; all && i < n; ++i) {
      char c = buffer[i];
      if (matched == 4) {
        if (c >= '0' && c <= '9') {
          number = (number < 0 ? 0 : number * 10) + (c - '0');
        } else if (number >= 0) {
          all = tells_again(number);
          matched = 0, number = -1;
        }
      } else {
        matched = (line_begins || matched) && c == mark[matched] ? matched + 1 : 0;
      }
      line_begins = c == '\n';
    }
  kernel::sys(__NR_close, file);
  return all;
}

Tells find_out(int fd) noexcept {
  struct stat st;
  if (kernel::sys(__NR_fstat, fd, static_cast<void*>(&st))) return Tells::unknown;
  if (S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode)) return Tells::again;
  bool again;
  if (S_ISCHR(st.st_mode)) {
    again = is_terminal(st.st_rdev);
  } else {
    Anonymous kind = anonymous_kind(fd);
    again = kind == Anonymous::tells_again || (kind == Anonymous::epoll && all_tell_again(fd));
  }
  return again ? Tells::again : Tells::once;
}

}  // namespace

bool tells_again(int fd) noexcept {
  Descriptor* d = descriptor(fd);
  if (!d) return false;
  Tells known = d->tells.load(relaxed);
  if (known == Tells::unknown) {
    known = find_out(fd);
    d->tells.store(known, relaxed);
  }
  return known == Tells::again;
}

Thread* sys_epoll_ctl(Thread* t) noexcept {
  constexpr uint64_t add = 1;
  auto at = static_cast<int>(t->rdi), fd = static_cast<int>(t->rdx);
  // What is not known of the instance is found out when somebody waits for it.
  Descriptor* d = t->rsi == add ? descriptor(at) : nullptr;
  if (!d || d->tells.load(relaxed) != Tells::again || tells_again(fd)) return pass(t);
  d->tells.store(Tells::once, relaxed);
  // The kernel is to wait from now on, and our instance not to look there.
  if (d->watched.exchange(0, relaxed)) event::unwatch(at);
  release_descriptor(at);
  return pass(t);
}

}  // namespace upcall::linux_abi
