// abi: threads=56 bound=21 counters=bound_threads:21-21
// A system-call filter of one thread holds for it and the threads it makes, whatever processor would be free, and for no
// other, also after it has ended.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "abi.h"

namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int turn = 0;

// With and without a filter threads wait for each other.
void take_turns(int me) {
  for (int i = 0; i < 300; ++i) {
    pthread_mutex_lock(&mutex);
    while (turn != me) CHECK_EQ(pthread_cond_wait(&changed, &mutex), 0);
    turn = 1 - me;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
}

// And membarrier, which no program that means itself alone would need.
void deny_getppid() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {5, program};
  CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0), 0);
}

void denied() { CHECK_ERRNO(syscall(SYS_getppid), EDOM); }
void allowed() { CHECK(syscall(SYS_getppid) > 0); }

}  // namespace

int main() {
  const int filtered = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);  // by the machine
  allowed();
  pthread_barrier_t barrier;
  constexpr int rounds = 7;
  for (int round = 0; round < rounds; ++round) {
    CHECK_EQ(pthread_barrier_init(&barrier, nullptr, 6), 0);
    std::vector<pthread_t> threads;
    for (int i = 0; i < 5; ++i)
      threads.push_back(start([&, i] {
        pthread_barrier_wait(&barrier);
        if (i == 0) take_turns(0);
        for (int k = 0; k < 50; ++k) {
          allowed();
          sched_yield();
          if (k % 10 == 0) nap(200'000);
        }
        pthread_barrier_wait(&barrier);
      }));
    threads.push_back(start([&] {
      allowed();
      if (round % 2) CHECK_EQ(unshare(CLONE_FS), 0);  // as sandboxes do: the filter comes last
      deny_getppid();
      denied();
      pthread_barrier_wait(&barrier);
      take_turns(1);
      std::vector<pthread_t> own;
      for (int i = 0; i < 2; ++i)
        own.push_back(start([] {
          for (int k = 0; k < 50; ++k) {
            denied();
            sched_yield();
          }
          nap(kMs);
          denied();
        }));
      for (int k = 0; k < 50; ++k) {
        denied();
        nap(100'000);
      }
      join_all(own);
      pthread_barrier_wait(&barrier);
      denied();
    }));
    join_all(threads);
    allowed();
    CHECK_EQ(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), filtered);
    pthread_barrier_destroy(&barrier);
  }
}
