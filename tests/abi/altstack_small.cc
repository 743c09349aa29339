// abi: threads=3
// sigaltstack(2): ENOMEM below MINSIGSTKSZ, EINVAL for unknown flags, EPERM while on it, EFAULT for bad addresses; a stack
// that is refused leaves the old one; each thread has its own, new threads have none; SS_DISABLE.
#include "abi.h"

static stack_t get() {
  stack_t now;
  CHECK_EQ(sigaltstack(nullptr, &now), 0);
  return now;
}

static void handler(int, siginfo_t*, void* raw) {
  auto* context = static_cast<ucontext_t*>(raw);
  CHECK_EQ(get().ss_flags, SS_ONSTACK);
  stack_t other = {};
  other.ss_sp = malloc(65536);
  other.ss_size = 65536;
  CHECK_ERRNO(sigaltstack(&other, nullptr), EPERM);
  other.ss_flags = SS_DISABLE;
  CHECK_ERRNO(sigaltstack(&other, nullptr), EPERM);
  free(other.ss_sp);
  const stack_t now = get();
  CHECK(context->uc_stack.ss_sp == now.ss_sp && context->uc_stack.ss_size == now.ss_size);
  CHECK_EQ(context->uc_stack.ss_flags, 0);  // where the thread was interrupted
}

static void body() {
  CHECK_EQ(get().ss_flags, SS_DISABLE);
  stack_t stack = {};
  stack.ss_sp = malloc(65536);
  stack.ss_size = 2047;
  CHECK_ERRNO(sigaltstack(&stack, nullptr), ENOMEM);
  stack.ss_size = 0;
  CHECK_ERRNO(sigaltstack(&stack, nullptr), ENOMEM);
  CHECK_EQ(get().ss_flags, SS_DISABLE);
  stack.ss_size = 65536;
  stack.ss_flags = 4;
  CHECK_ERRNO(sigaltstack(&stack, nullptr), EINVAL);
  stack.ss_flags = SS_ONSTACK | SS_DISABLE;
  CHECK_ERRNO(sigaltstack(&stack, nullptr), EINVAL);
  stack.ss_flags = 0;
  stack_t old = {};
  CHECK_EQ(sigaltstack(&stack, &old), 0);
  CHECK_EQ(old.ss_flags, SS_DISABLE);
  CHECK(get().ss_sp == stack.ss_sp && get().ss_size == 65536 && get().ss_flags == 0);
  CHECK_ERRNO(syscall(SYS_sigaltstack, 8, nullptr), EFAULT);
  // The new one counts although the old one cannot be written.
  stack_t half = stack;
  half.ss_size = 32768;
  CHECK_ERRNO(syscall(SYS_sigaltstack, &half, 8), EFAULT);
  CHECK_EQ(get().ss_size, 32768);
  CHECK_EQ(sigaltstack(&stack, nullptr), 0);
  CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
  stack.ss_flags = SS_ONSTACK;  // accepted and without a meaning, as ever
  CHECK_EQ(sigaltstack(&stack, nullptr), 0);
  CHECK_EQ(get().ss_flags, 0);
  stack_t off = {};
  off.ss_flags = SS_DISABLE;
  CHECK_EQ(sigaltstack(&off, nullptr), 0);
  CHECK(get().ss_flags == SS_DISABLE);
  free(stack.ss_sp);
}

int main() {
  install_info(SIGUSR1, handler, SA_ONSTACK);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 3; ++i) threads.push_back(start(body));
  join_all(threads);
  body();
}
