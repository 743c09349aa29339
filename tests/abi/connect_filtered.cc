// abi: threads=0 bound=1
// A filter of system calls holds for connect(2) however the runtime makes it, and meets no call there that the program never makes:
// a process that is killed for any other way ends well. Installed before there are threads, and for all of them afterwards.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "descriptor.h"

namespace {

constexpr unsigned kRefuse = SECCOMP_RET_ERRNO | EPERM, kKill = SECCOMP_RET_KILL_PROCESS;

void filter(int number, unsigned action, bool all_threads) {
  sock_filter code[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<unsigned>(number)},
                        {BPF_RET | BPF_K, 0, 0, action},
                        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  sock_fprog program = {4, code};
  CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0, &program) !=
      0)
    _exit(77);
}

void connects(int number, unsigned action, bool threads_first) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    sockaddr_in address;
    listener(&address);
    if (threads_first) join(start([] {}));
    filter(number, action, threads_first);
    join(start([&] {
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      const auto try_it = [&] {
        return connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
      };
      if (number == SYS_connect)
        CHECK_ERRNO(try_it(), EPERM);
      else
        CHECK_EQ(try_it(), 0);
    }));
    _exit(0);
  }
  const int status = wait_status(child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip("no filters here");
  CHECK_EQ(status, 0);
}

}  // namespace

int main() {
  for (const bool threads_first : {false, true}) {
    connects(SYS_connect, kRefuse, threads_first);
    connects(SYS_io_uring_setup, kKill, threads_first);
  }
}
