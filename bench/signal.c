// Benchmarks of signals between threads, and of making processes.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker.h"

enum { CLOCK_EVERY = 512 };

static pthread_t pair[2];
static pthread_barrier_t both;
static _Atomic long last_turn = -1;
static _Atomic long handled[2];
static _Thread_local int me;
static uint64_t elapsed;
static const struct options* worker_options;

static void count_handled(int number) {
  (void)number;
  // Each slot has one writer: the thread whose handler it is.
  atomic_store_explicit(&handled[me], atomic_load_explicit(&handled[me], memory_order_relaxed) + 1,
                        memory_order_relaxed);
}

static void send_to(int whom) {
  int error = pthread_kill(pair[whom], SIGUSR1);
  EXPECT(error == 0, "pthread_kill: %s", strerror(error));
}

// Blocked but for the wait, so that no signal comes between the look and the wait.
static void await(const sigset_t* open, long count) {
  while (atomic_load_explicit(&handled[me], memory_order_relaxed) < count) sigsuspend(open);
}

static void* by_turns(void* argument) {
  me = (int)(intptr_t)argument;
  const struct options* options = worker_options;
  sigset_t open;
  pthread_sigmask(SIG_SETMASK, NULL, &open);
  sigdelset(&open, SIGUSR1);
  pthread_barrier_wait(&both);
  uint64_t begin = now();
  for (long turn = 1; turn - 1 != last_turn; ++turn) {
    if (me == 0) {
      if (turn % CLOCK_EVERY == 0 && now() - begin > duration(options)) last_turn = turn;
      send_to(1);
      await(&open, turn);
    } else {
      await(&open, turn);
      send_to(0);
    }
  }
  if (me == 0) elapsed = now() - begin;
  return &handled[me];
}

// pthread_kill until the handler of the other thread, which waits in sigsuspend, has returned; one way.
struct result signal_thread(const struct options* options) {
  struct sigaction action = {.sa_handler = count_handled};
  EXPECT(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction: %s", strerror(errno));
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
  worker_options = options;
  pthread_barrier_init(&both, NULL, 3);
  for (int i = 0; i < 2; ++i) pair[i] = start_thread(by_turns, (void*)(intptr_t)i);
  pthread_barrier_wait(&both);
  for (int i = 0; i < 2; ++i) EXPECT(join_thread(pair[i]) == &handled[i], "wrong thread joined");
  EXPECT(handled[0] == handled[1] && handled[0] > 0, "handlers ran %ld and %ld times", handled[0],
         handled[1]);
  long sent = handled[0] + handled[1];
  return (struct result){.value = (double)elapsed / (double)sent, .count = sent};
}

static void* nothing(void* argument) { return argument; }

// A signal blocked and unblocked again.
struct result mask_pair(const struct options* options) {
  enum { CHUNK = 1000 };
  EXPECT(join_thread(start_thread(nothing, pair)) == pair, "wrong thread joined");
  sigset_t set, old, now_set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  long done = 0;
  uint64_t begin = now(), taken;
  do {
    for (int i = 0; i < CHUNK; ++i) {
      pthread_sigmask(SIG_BLOCK, &set, &old);
      pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    done += CHUNK;
    taken = now() - begin;
  } while (taken < duration(options));
  EXPECT(pthread_sigmask(SIG_BLOCK, NULL, &now_set) == 0 && !sigismember(&old, SIGUSR1) &&
             !sigismember(&now_set, SIGUSR1),
         "mask_pair: the mask is not what it was");
  return (struct result){.value = (double)taken / (double)done, .count = done};
}

static int gate[2];

static void* blocked(void* argument) {
  char byte;
  EXPECT(read(gate[0], &byte, 1) == 0, "read from a pipe that nobody writes to");
  return argument;
}

// fork, exec of /bin/true and waiting for it, beside seven threads that block.
struct result fork_exec(const struct options* options) {
  enum { THREADS = 7, RUN_ENOUGH = 20 };
  pthread_t threads[THREADS];
  EXPECT(pipe2(gate, O_CLOEXEC) == 0, "pipe: %s", strerror(errno));
  for (int i = 0; i < THREADS; ++i) threads[i] = start_thread(blocked, &threads[i]);
  long done = 0;
  uint64_t begin = now(), taken;
  do {
    pid_t child = fork();
    EXPECT(child >= 0, "fork: %s", strerror(errno));
    if (child == 0) {
      execl("/bin/true", "true", NULL);
      _exit(127);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "/bin/true: wait status 0x%x", status);
    ++done;
    taken = now() - begin;
  } while (done < RUN_ENOUGH || taken < duration(options));
  close(gate[1]);
  for (int i = 0; i < THREADS; ++i) EXPECT(join_thread(threads[i]) == &threads[i], "wrong thread joined");
  return (struct result){.value = (double)taken / (double)done / 1e6, .count = done};
}
