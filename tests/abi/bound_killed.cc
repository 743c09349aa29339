// abi: threads=8 bound=6 counters=bound_threads:6-6
// A thread that its own filter kills has ended: it is joined, its robust mutex is marked, the others go on.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "abi.h"

int main() {
  std::atomic<bool> stop{false};
  const pthread_t other = start([&] {
    while (!stop) nap(kMs);
  });
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  for (int round = 0; round < 6; ++round) {
    pthread_mutex_t mutex;
    CHECK_EQ(pthread_mutex_init(&mutex, &attributes), 0);
    const pthread_t killed = start([&] {
      sock_filter program[] = {
          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      };
      const sock_fprog filter = {4, program};
      CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
      CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0), 0);
      CHECK_EQ(pthread_mutex_lock(&mutex), 0);
      if (round % 2) nap(kMs);
      syscall(SYS_getppid);
      FAIL("still alive");
    });
    join(killed);
    CHECK_EQ(pthread_mutex_lock(&mutex), EOWNERDEAD);
    CHECK_EQ(pthread_mutex_consistent(&mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    join(start([] { nap(kMs); }));
  }
  stop = true;
  join(other);
}
