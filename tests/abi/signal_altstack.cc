// abi: threads=2
// sigaltstack(2): a stack of each thread's own, none in a new thread; used by SA_ONSTACK handlers only; EPERM while on it; SS_DISABLE;
// SS_AUTODISARM takes it away for the handler's time; what a handler on the normal stack changes is undone at its return;
// uc_stack tells; too small a stack is refused.
#include <ucontext.h>

#include "abi.h"

static constexpr size_t kSize = 64 * 1024;
static thread_local char* stack = nullptr;
static thread_local int seen = 0;

static bool inside(const void* p) { return p > stack && p < stack + kSize; }

static stack_t current() {
  stack_t now = {};
  CHECK_EQ(sigaltstack(nullptr, &now), 0);
  return now;
}

static void on_stack(int, siginfo_t*, void* context) {
  char here;
  CHECK(inside(&here));
  ++seen;
  const stack_t now = current();
  CHECK_EQ(now.ss_flags, SS_ONSTACK);
  CHECK(now.ss_sp == stack);
  stack_t other = {};
  other.ss_flags = SS_DISABLE;
  CHECK_ERRNO(sigaltstack(&other, nullptr), EPERM);
  const auto* told = static_cast<ucontext_t*>(context);
  CHECK(told->uc_stack.ss_sp == stack);
  CHECK_EQ(told->uc_stack.ss_size, kSize);
  CHECK_EQ(told->uc_stack.ss_flags & SS_DISABLE, 0);
  if (seen == 1) CHECK_EQ(raise(SIGUSR2), 0);  // goes on below, on the same stack
}

static void on_normal_stack(int) {
  char here;
  CHECK(!inside(&here));
  ++seen;
  CHECK_EQ(current().ss_flags, 0);
  stack_t off = {};
  off.ss_flags = SS_DISABLE;
  CHECK_EQ(sigaltstack(&off, nullptr), 0);
  CHECK_EQ(current().ss_flags, SS_DISABLE);
}

static constexpr int kAutodisarm = static_cast<int>(1u << 31);

static void disarmed(int, siginfo_t*, void* context) {
  char here;
  CHECK(inside(&here));
  ++seen;
  CHECK_EQ(current().ss_flags, SS_DISABLE);
  const auto* told = static_cast<ucontext_t*>(context);
  CHECK(told->uc_stack.ss_sp == stack);
  CHECK_EQ(told->uc_stack.ss_flags, kAutodisarm);
}

static void body() {
  const stack_t before = current();
  CHECK_EQ(before.ss_flags, SS_DISABLE);
  stack = static_cast<char*>(malloc(kSize));
  stack_t mine = {};
  mine.ss_sp = stack;
  mine.ss_size = kSize;
  seen = 0;
  CHECK_EQ(sigaltstack(&mine, nullptr), 0);
  CHECK_EQ(current().ss_flags, 0);
  CHECK_EQ(current().ss_size, kSize);
  CHECK_EQ(raise(SIGUSR1), 0);
  CHECK_EQ(seen, 2);
  seen = 0;
  CHECK_EQ(raise(SIGHUP), 0);
  CHECK_EQ(seen, 1);
  CHECK_EQ(current().ss_flags, 0);  // as before the handler
  CHECK(current().ss_sp == stack);

  mine.ss_flags = kAutodisarm;
  CHECK_EQ(sigaltstack(&mine, nullptr), 0);
  CHECK_EQ(current().ss_flags, kAutodisarm);
  seen = 0;
  for (int i = 1; i <= 3; ++i) {
    CHECK_EQ(raise(SIGTERM), 0);
    CHECK_EQ(seen, i);
    CHECK_EQ(current().ss_flags, kAutodisarm);
    CHECK(current().ss_sp == stack);
    sched_yield();
  }
  mine.ss_flags = 0;
  mine.ss_size = 100;
  CHECK_ERRNO(sigaltstack(&mine, nullptr), ENOMEM);
  mine.ss_size = kSize;
  mine.ss_flags = 16;
  CHECK_ERRNO(sigaltstack(&mine, nullptr), EINVAL);
  mine.ss_flags = SS_DISABLE;
  CHECK_EQ(sigaltstack(&mine, nullptr), 0);
  CHECK_EQ(current().ss_flags, SS_DISABLE);
  CHECK_EQ(current().ss_size, 0);
  free(stack);
  stack = nullptr;
}

int main() {
  install_info(SIGUSR1, on_stack, SA_ONSTACK);
  install_info(SIGUSR2, on_stack, SA_ONSTACK);
  install(SIGHUP, on_normal_stack);
  install_info(SIGTERM, disarmed, SA_ONSTACK);
  join(start([] {}));
  body();
  const pthread_t first = start(body), second = start(body);
  join(first);
  join(second);
}
