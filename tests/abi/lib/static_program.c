// Statically linked: no library can be preloaded. Its threads are its own affair.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void* body(void* argument) { return argument; }

int main(int count, char** arguments) {
  pthread_t thread;
  void* result = NULL;
  sigset_t mask;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  for (int signal = 1; signal < 32; ++signal)
    if (sigismember(&mask, signal)) return 90;
  if (count != 2 || pthread_create(&thread, NULL, body, &thread)) return 91;
  pthread_join(thread, &result);
  return result == &thread ? atoi(arguments[1]) : 92;
}
