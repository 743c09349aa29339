// refuse MODE COMMAND [ARGS]: becomes COMMAND, in a process that may do less. Inherited by all that COMMAND starts.
//
//   unprivileged   user and group 65534 without further groups, no capability, not even through set-uid programs
//                  (no_new_privs, empty bounding set), 8 MiB of locked memory. What `setpriv --reuid=65534
//                  --regid=65534 --clear-groups --no-new-privs --bounding-set=-all` does, for those who are root; for
//                  others the last two alone.
//   refused        bpf, perf_event_open, userfaultfd and io_uring_* answer EPERM, as in a container
//   eventless      epoll_create, epoll_ctl, preadv2, pwritev2 and io_uring_* do: descriptors cannot be waited for by events
//
// Exit status 125 when that cannot be done, 126 or 127 when COMMAND cannot be executed.
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOBODY = 65534, LOCKED_BYTES = 8 << 20 };

static void must(int done, const char* what) {
  if (done) return;
  fprintf(stderr, "refuse: %s: %s\n", what, strerror(errno));
  exit(125);
}

static void drop_privileges(void) {
  // A change of user forgets this: whoever started us may count on it.
  int signal_at_parents_death = 0;
  must(prctl(PR_GET_PDEATHSIG, &signal_at_parents_death) == 0, "PR_GET_PDEATHSIG");
  struct rlimit locked;
  must(getrlimit(RLIMIT_MEMLOCK, &locked) == 0, "getrlimit");
  if (locked.rlim_max > LOCKED_BYTES) locked.rlim_max = LOCKED_BYTES;
  locked.rlim_cur = locked.rlim_max;
  must(setrlimit(RLIMIT_MEMLOCK, &locked) == 0, "setrlimit");
  if (geteuid() == 0) {
    for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; ++capability)
      must(prctl(PR_CAPBSET_DROP, capability) == 0, "capability bounding set");
    must(setgroups(0, NULL) == 0, "setgroups");
    must(setresgid(NOBODY, NOBODY, NOBODY) == 0, "setresgid");
    must(setresuid(NOBODY, NOBODY, NOBODY) == 0, "setresuid");
  }
  must(prctl(PR_SET_PDEATHSIG, (unsigned long)signal_at_parents_death) == 0, "PR_SET_PDEATHSIG");
  must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS_EQUAL_SKIP(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, value)
#define REFUSE(number) UNLESS_EQUAL_SKIP(number, 1), ANSWER(SECCOMP_RET_ERRNO | EPERM)

static void install(const struct sock_fprog* program) {
  // Root may filter without no_new_privs, which would change what set-uid programs do.
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) == 0) return;
  must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) == 0, "seccomp");
}

static void refuse_calls(void) {
  struct sock_filter filter[] = {
      LOAD(arch),
      UNLESS_EQUAL_SKIP(AUDIT_ARCH_X86_64, 13),
      LOAD(nr),
      REFUSE(__NR_bpf),
      REFUSE(__NR_perf_event_open),
      REFUSE(__NR_userfaultfd),
      REFUSE(__NR_io_uring_setup),
      REFUSE(__NR_io_uring_enter),
      REFUSE(__NR_io_uring_register),
      ANSWER(SECCOMP_RET_ALLOW),
  };
  install(&(struct sock_fprog){sizeof filter / sizeof *filter, filter});
}

static void refuse_events(void) {
  struct sock_filter filter[] = {
      LOAD(arch),
      UNLESS_EQUAL_SKIP(AUDIT_ARCH_X86_64, 15),
      LOAD(nr),
      REFUSE(__NR_epoll_create),
      REFUSE(__NR_epoll_create1),
      REFUSE(__NR_epoll_ctl),
      REFUSE(__NR_preadv2),
      REFUSE(__NR_pwritev2),
      REFUSE(__NR_io_uring_setup),
      REFUSE(__NR_io_uring_enter),
      ANSWER(SECCOMP_RET_ALLOW),
  };
  install(&(struct sock_fprog){sizeof filter / sizeof *filter, filter});
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fputs("usage: refuse unprivileged|refused|eventless COMMAND [ARGS]\n", stderr);
    return 125;
  }
  if (strcmp(argv[1], "unprivileged") == 0) {
    drop_privileges();
  } else if (strcmp(argv[1], "refused") == 0) {
    refuse_calls();
  } else if (strcmp(argv[1], "eventless") == 0) {
    refuse_events();
  } else {
    fprintf(stderr, "refuse: unknown mode '%s': unprivileged, refused or eventless\n", argv[1]);
    return 125;
  }
  execvp(argv[2], argv + 2);
  const int error = errno;
  fprintf(stderr, "refuse: %s: %s\n", argv[2], strerror(error));
  return error == ENOENT ? 127 : 126;
}
