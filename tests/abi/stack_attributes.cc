// abi: threads=8
// Stack and guard sizes asked for are those that pthread_getattr_np reports, in main too; the default follows the
// stack limit; the whole stack can be written, the guard cannot.
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "abi.h"

static thread_local sigjmp_buf escape;

static void check_own(size_t stack_size, size_t guard_size, bool probe) {
  pthread_attr_t own;
  CHECK_EQ(pthread_getattr_np(pthread_self(), &own), 0);
  void* address = nullptr;
  size_t size = 0, guard = 0;
  CHECK_EQ(pthread_attr_getstack(&own, &address, &size), 0);
  CHECK_EQ(pthread_attr_getguardsize(&own, &guard), 0);
  pthread_attr_destroy(&own);
  CHECK(size >= stack_size && size <= stack_size + guard_size + 65536);
  CHECK_EQ(guard, guard_size);
  char here;
  CHECK(static_cast<char*>(address) < &here && &here < static_cast<char*>(address) + size);
  if (!probe) return;
  auto* lowest = static_cast<volatile char*>(address);
  lowest[guard_size != 0 && size > stack_size ? guard_size : 0] = 1;
  if (guard_size == 0) return;
  std::vector<char> alternate(65536);
  stack_t stack = {};
  stack.ss_sp = alternate.data();
  stack.ss_size = alternate.size();
  CHECK_EQ(sigaltstack(&stack, nullptr), 0);
  if (sigsetjmp(escape, 1) == 0) {
    lowest[-1] = 1;
    FAIL("the guard was written");
  }
  stack.ss_flags = SS_DISABLE;
  CHECK_EQ(sigaltstack(&stack, nullptr), 0);
}

int main() {
  install(
      SIGSEGV, [](int) { siglongjmp(escape, 1); }, SA_ONSTACK);
  const auto run = [](size_t stack_size, size_t guard_size) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, stack_size), 0);
    CHECK_EQ(pthread_attr_setguardsize(&attributes, guard_size), 0);
    join(start([=] { check_own(stack_size, guard_size, true); }, &attributes));
  };
  run(128 * 1024, 4096);
  run(1 << 20, 4096);
  run(1 << 20, 16 * 4096);
  run(1 << 20, 0);
  run(64 << 20, 4096);
  run(3 * 4096 + 256 * 1024, 4096);
  rlimit limit;
  CHECK_EQ(getrlimit(RLIMIT_STACK, &limit), 0);
  pthread_attr_t defaults;
  CHECK_EQ(pthread_getattr_default_np(&defaults), 0);
  size_t size = 0;
  CHECK_EQ(pthread_attr_getstacksize(&defaults, &size), 0);
  if (limit.rlim_cur != RLIM_INFINITY) CHECK_EQ(size, limit.rlim_cur);
  join(start([size] { check_own(size, 4096, true); }));
  join(start([size] { check_own(size, 4096, true); }));
  pthread_attr_t own;
  CHECK_EQ(pthread_getattr_np(pthread_self(), &own), 0);
  void* address = nullptr;
  CHECK_EQ(pthread_attr_getstack(&own, &address, &size), 0);
  CHECK(static_cast<void*>(&own) > address &&
        reinterpret_cast<char*>(&own) < static_cast<char*>(address) + size);
}
