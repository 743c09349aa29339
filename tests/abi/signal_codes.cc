// abi: threads=5
// sigaction(2): si_code, si_pid, si_uid and si_value say how and by whom a signal was sent: kill, tgkill, raise, sigqueue,
// pthread_sigqueue, rt_sigqueueinfo, rt_tgsigqueueinfo; by this process and by a child; to a thread that computes, sleeps, waits
// for a condition, reads a pipe.
#include "abi.h"

static siginfo_t seen;
static std::atomic<int> count{0};

static void handler(int signal, siginfo_t* info, void*) {
  CHECK_EQ(info->si_signo, signal);
  seen = *info;
  ++count;
}

static void expect(int wanted, int code, pid_t pid) {
  for (int i = 0; count < wanted && i < 10000; ++i) nap(kMs);
  CHECK_EQ(count, wanted);
  CHECK_EQ(seen.si_code, code);
  CHECK_EQ(seen.si_pid, pid);
  CHECK_EQ(seen.si_uid, getuid());
}

static std::atomic<bool> stop{false};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int ends[2];

struct Target {
  std::atomic<pid_t> tid{0};
  pthread_t thread{};
};

static void to_thread(Target* target) {
  settle();
  int before = count;
  CHECK_EQ(tgkill(getpid(), target->tid, SIGUSR1), 0);
  expect(before + 1, SI_TKILL, getpid());
  CHECK_EQ(syscall(SYS_tkill, target->tid.load(), SIGUSR1), 0);
  expect(before + 2, SI_TKILL, getpid());
  CHECK_EQ(pthread_sigqueue(target->thread, SIGRTMIN + 3, sigval{.sival_int = 31}), 0);
  expect(before + 3, SI_QUEUE, getpid());
  CHECK_EQ(seen.si_value.sival_int, 31);
  siginfo_t info = {};
  info.si_code = -77;  // whatever the sender likes, below 0
  info.si_pid = 4711;
  info.si_uid = getuid();
  info.si_value.sival_ptr = &seen;
  CHECK_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), target->tid.load(), SIGUSR1, &info), 0);
  expect(before + 4, -77, 4711);
  CHECK(seen.si_value.sival_ptr == &seen);
}

static void to_process() {
  int before = count;
  CHECK_EQ(kill(getpid(), SIGUSR1), 0);
  expect(before + 1, SI_USER, getpid());
  CHECK_EQ(sigqueue(getpid(), SIGUSR1, sigval{.sival_ptr = &before}), 0);
  expect(before + 2, SI_QUEUE, getpid());
  CHECK(seen.si_value.sival_ptr == &before);
  siginfo_t info = {};
  info.si_code = SI_MESGQ;
  info.si_pid = 4712;
  info.si_uid = getuid();
  CHECK_EQ(syscall(SYS_rt_sigqueueinfo, getpid(), SIGRTMIN + 3, &info), 0);
  expect(before + 3, SI_MESGQ, 4712);
  CHECK_EQ(raise(SIGUSR1), 0);
  expect(before + 4, SI_TKILL, getpid());

  const pid_t child = fork();
  if (child == 0) {
    const int first = kill(getppid(), SIGUSR1);
    _exit(first);
  }
  wait_exit(child, 0);
  expect(before + 5, SI_USER, child);
  const pid_t second = fork();
  if (second == 0) _exit(sigqueue(getppid(), SIGRTMIN + 3, sigval{.sival_int = 5}));
  wait_exit(second, 0);
  expect(before + 6, SI_QUEUE, second);
  CHECK_EQ(seen.si_value.sival_int, 5);
}

template <class F>
static Target* target(F body) {
  auto* t = new Target;
  t->thread = start([t, body] {
    t->tid = gettid();
    body();
  });
  while (t->tid == 0) sched_yield();
  return t;
}

int main() {
  install_info(SIGUSR1, handler, SA_RESTART);
  install_info(SIGRTMIN + 3, handler, SA_RESTART);
  CHECK_EQ(pipe(ends), 0);
  Target* all[] = {target([] {
                     while (!stop) burn(kMs / 2);
                   }),
                   target([] {
                     while (!stop) nap(20 * kMs);
                   }),
                   target([] {
                     pthread_mutex_lock(&mutex);
                     while (!stop) pthread_cond_wait(&cond, &mutex);
                     pthread_mutex_unlock(&mutex);
                   }),
                   target([] {
                     char byte;
                     CHECK_EQ(read(ends[0], &byte, 1), 1);
                   })};
  for (Target* t : all) to_thread(t);
  // For the process, by the main thread and by another while the others block it: handled by the one that sends it.
  const sigset_t set = signal_set({SIGUSR1, SIGRTMIN + 3});
  stop = true;
  CHECK_EQ(write(ends[1], "x", 1), 1);
  pthread_mutex_lock(&mutex);
  pthread_cond_broadcast(&cond);
  pthread_mutex_unlock(&mutex);
  for (Target* t : all) join(t->thread);
  to_process();
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  join(start([&set] {
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, nullptr), 0);
    to_process();
  }));
}
