// abi: threads=2 descriptors=events timeout=30
// Sandboxes that refuse, one at a time, calls that a runtime may want for its waits: threads wait for pipes and sockets all the
// same, and without burning time.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "descriptor.h"

namespace {

void refuse(long number, int error) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {4, code};
  CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) skip("no filters");
}

void ping_pong(const Pair& there, const Pair& back) {
  const pthread_t other = start([&] {
    for (int i = 0; i < 50; ++i) put(back.b, get(there.a));
  });
  for (int i = 0; i < 50; ++i) {
    put(there.b, static_cast<char>(i));
    CHECK_EQ(get(back.a), static_cast<char>(i));
  }
  join(other);
}

int64_t used() {
  rusage u;
  CHECK_EQ(getrusage(RUSAGE_SELF, &u), 0);
  return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * kSecond + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

void waits() {
  ping_pong(pipe_pair(), pipe_pair());
  ping_pong(unix_pair(), unix_pair());
  const Pair t = tcp_pair(), u = tcp_pair();
  ping_pong(t, u);
  const int64_t before = used();
  const pthread_t reader = start([&] { CHECK_EQ(get(t.a), 'x'); });
  nap(100 * kMs);
  const int64_t spent = used() - before;
  put(t.b, 'x');
  join(reader);
  if (spent > 60 * kMs)
    FAIL("%lld ms of computing in 100 ms of waiting", static_cast<long long>(spent / kMs));
}

}  // namespace

int main(int argc, char** argv) {
  struct {
    long number;
    int error;
  } const refused[] = {{0xffff, EPERM},
                       {SYS_epoll_create1, EPERM},
                       {SYS_epoll_create1, ENOSYS},
                       {SYS_epoll_ctl, EPERM},
                       {441, ENOSYS},
                       {441, EPERM},
                       {SYS_epoll_wait, EPERM},
                       {SYS_preadv2, ENOSYS},
                       {SYS_preadv2, EPERM},
                       {SYS_pwritev2, EPERM},
                       {SYS_recvfrom, EPERM}};
  for (const auto& r : refused) {
    if (argc > 1 && atol(argv[1]) != r.number) continue;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      refuse(r.number, r.error);
      waits();
      _exit(0);
    }
    const int status = wait_status(child);
    if (status == kSkip << 8) skip("no filters");
    if (status != 0) FAIL("call %ld refused with %d: status 0x%x", r.number, r.error, status);
  }
  waits();
}
