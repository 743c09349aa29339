// crasher HOW: dies in a thread beside two that wait, where a core file is to show it: abort, segv, or by a signal sent
// to a thread that blocks in a read (quit).
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int pipe_ends[2];

static void* waits(void* argument) {
  pause();
  return argument;
}

__attribute__((noinline)) static void dies_here(const char* how) {
  char byte;
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "segv") == 0) *(volatile int*)8 = 1;
  if (read(pipe_ends[0], &byte, 1) == 1) _exit(1);  // never
}

__attribute__((noinline)) static void* calls_it(void* how) {
  dies_here(how);
  _exit(1);
}

int main(int count, char** arguments) {
  pthread_t threads[3];
  if (count != 2 || pipe(pipe_ends) != 0) return 2;
  signal(SIGQUIT, SIG_DFL);
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, waits, NULL);
  pthread_create(&threads[2], NULL, calls_it, arguments[1]);
  usleep(50000);
  pthread_kill(threads[2], SIGQUIT);
  pthread_join(threads[2], NULL);
  return 1;
}
