// abi: threads=9
// A cancelled thread unwinds through whatever lies on its stack: a thousand frames with destructors; handlers of
// exceptions that wait while they handle one; C functions of the library with a callback (qsort, pthread_once); a signal
// handler, on the thread's and on an alternate stack; a stack of the program's own. Nested try blocks see
// abi::__forced_unwind, innermost first.
#include <cxxabi.h>
#include <sys/mman.h>

#include <exception>

#include "abi.h"

static std::atomic<int> depth_left;
static std::atomic<bool> entered;
static std::string order;

struct Count {
  ~Count() { --depth_left; }
};

static void wait_here() {
  entered = true;
  sleep(1000);
}

__attribute__((noinline)) static int deep(int depth) {
  const Count count;
  if (depth == 0) {
    wait_here();
    return 0;
  }
  return deep(depth - 1) + 1;
}

static void cancel_in(const char* where, void (*body)(), const char* expected,
                      const pthread_attr_t* attributes = nullptr) {
  entered = false;
  order.clear();
  const pthread_t thread = start(body, attributes);
  while (!entered) sched_yield();
  CHECK_EQ(pthread_cancel(thread), 0);
  if (join(thread) != PTHREAD_CANCELED) FAIL("not cancelled in %s", where);
  if (order != expected) FAIL("%s: '%s', not '%s'", where, order.c_str(), expected);
}

struct Note {
  char c;
  ~Note() { order += c; }
};

static void nested_handlers() {
  try {
    try {
      const Note note{'1'};
      wait_here();
    } catch (const abi::__forced_unwind&) {
      order += '2';
      CHECK(std::current_exception() == nullptr || order == "12");
      throw;
    }
  } catch (...) {
    order += '3';
    throw;
  }
}

static void while_handling() {
  const Note outer{'4'};
  try {
    throw 7;
  } catch (int seven) {
    const Note note{'0'};
    CHECK_EQ(seven, 7);
    wait_here();
  }
}

// The destructor waits, cancellation being disabled in it, while an exception is on its way; the request acts later.
static void in_destructor() {
  struct Waits {
    ~Waits() {
      int old;
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
      entered = true;
      usleep(1000);
      order += 'w';
      pthread_setcancelstate(old, nullptr);
    }
  };
  try {
    const Waits waits;
    throw 1;
  } catch (int) {
    order += 'c';
  }
  const Note note{'n'};
  sleep(1000);
}

static void in_callback() {
  const Note note{'q'};
  int numbers[] = {3, 1, 2};
  qsort(numbers, 3, sizeof numbers[0], [](const void*, const void*) {
    const Note inner{'i'};
    wait_here();
    return 0;
  });
}

// By a pointer: the compiler takes it that raise itself lets nothing pass.
static int (*volatile send)(int) = raise;

static void in_handler() {
  const Note note{'h'};
  send(SIGUSR1);
}

static char other_stack[64 << 10];
static void in_handler_on_another_stack() {
  const stack_t stack = {other_stack, 0, sizeof other_stack};
  CHECK_EQ(sigaltstack(&stack, nullptr), 0);
  const Note note{'a'};
  send(SIGUSR2);
}

int main() {
  install(SIGUSR1, [](int) {
    const Note note{'s'};
    wait_here();
  });
  install(
      SIGUSR2,
      [](int) {
        const Note note{'s'};
        wait_here();
      },
      SA_ONSTACK);
  depth_left = 1001;
  cancel_in(
      "deep", [] { deep(1000); }, "");
  CHECK_EQ(depth_left, 0);
  cancel_in("nested handlers", nested_handlers, "123");
  cancel_in("a handler of an exception", while_handling, "04");
  cancel_in("a destructor", in_destructor, "wcn");
  cancel_in("qsort", in_callback, "iq");
  cancel_in("a signal handler", in_handler, "sh");
  cancel_in("a signal handler on another stack", in_handler_on_another_stack, "sa");
  // A stack of the program's own.
  constexpr size_t kBytes = 256 << 10;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  pthread_attr_t attributes;
  CHECK_EQ(pthread_attr_init(&attributes), 0);
  CHECK_EQ(pthread_attr_setstack(&attributes, memory, kBytes), 0);
  cancel_in("a stack of one's own", nested_handlers, "123", &attributes);
  depth_left = 101;
  cancel_in(
      "a stack of one's own, deep", [] { deep(100); }, "", &attributes);
  CHECK_EQ(depth_left, 0);
}
