// abi: threads=4
// Runtimes that turn faults into exceptions (-fnon-call-exceptions): a handler of SIGSEGV and SIGFPE throws, the unwinder
// passes the signal's frame into the function that faulted, destructors run there, and the thread goes on; also out of a
// signal of another thread that came while a function computed. The mask is the thrower's business, as documented for
// siglongjmp.
#pragma GCC optimize("non-call-exceptions")
#include <stdexcept>

#include "abi.h"

static thread_local int destroyed = 0;

struct Guard {
  ~Guard() { ++destroyed; }
};

struct Fault : std::runtime_error {
  int signal;
  explicit Fault(int s) : std::runtime_error("fault"), signal(s) {}
};

static void handler(int signal) {
  const sigset_t set = signal_set({signal});
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  throw Fault(signal);
}

__attribute__((noinline)) static int deref(volatile int* p) {
  Guard guard;
  return *p;
}

__attribute__((noinline)) static int divide(volatile int* a, volatile int* b) {
  Guard guard;
  volatile int result = *a / *b;
  return result;
}

__attribute__((noinline)) static int nested(int levels, volatile int* p) {
  Guard guard;
  return levels ? nested(levels - 1, p) + 1 : deref(p);
}

static void body() {
  volatile int one = 1, zero = 0;
  for (int i = 0; i < 15; ++i) {
    destroyed = 0;
    int caught = 0;
    try {
      deref(nullptr);
    } catch (const Fault& fault) {
      caught = fault.signal;
    }
    CHECK_EQ(caught, SIGSEGV);
    CHECK_EQ(destroyed, 1);
    try {
      divide(&one, &zero);
    } catch (const Fault& fault) {
      caught = fault.signal;
    }
    CHECK_EQ(caught, SIGFPE);
    CHECK_EQ(destroyed, 2);
    try {
      nested(10, nullptr);
    } catch (const std::exception&) {
      caught = 0;
    }
    CHECK_EQ(caught, 0);
    CHECK_EQ(destroyed, 14);
    sched_yield();
  }
}

int main() {
  install(SIGSEGV, handler);
  install(SIGFPE, handler);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 4; ++i) threads.push_back(start(body));
  join_all(threads);
  body();
}
