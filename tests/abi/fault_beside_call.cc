// abi: threads=2
// A fault in the instructions right before and after a system call (which the substitution of that call may have moved)
// is like any other: the handler sees the program's address, repairs, and the instruction is repeated; or it goes on
// behind it.
#include <sys/mman.h>
#include <ucontext.h>

#include "abi.h"

extern "C" {
extern const char beside_before[], beside_after[], beside_skipped[];
long beside_call(long* before, long* after);
}

asm(R"(
        .globl beside_call
        .type beside_call, @function
beside_call:
        mov $186, %eax
beside_before:
        mov (%rdi), %rdx
        syscall
beside_after:
        mov (%rsi), %rcx
beside_skipped:
        lea (%rcx,%rdx), %rax
        ret
        .size beside_call, . - beside_call
)");

static thread_local char* page = nullptr;
static thread_local int seen_before = 0, seen_after = 0;
static std::atomic<bool> skip_it{false};

static void handler(int, siginfo_t* info, void* raw) {
  greg_t* reg = static_cast<ucontext_t*>(raw)->uc_mcontext.gregs;
  const auto* at = reinterpret_cast<const char*>(reg[REG_RIP]);
  CHECK(info->si_addr == page);
  if (at == beside_before)
    ++seen_before;
  else if (at == beside_after)
    ++seen_after;
  else
    FAIL("at %p, not %p or %p", static_cast<const void*>(at), static_cast<const void*>(beside_before),
         static_cast<const void*>(beside_after));
  if (skip_it && at == beside_after) {
    reg[REG_RCX] = 5;
    reg[REG_RIP] = reinterpret_cast<greg_t>(beside_skipped);
    return;
  }
  CHECK_EQ(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
}

static void body() {
  page = static_cast<char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(page != MAP_FAILED);
  auto* number = reinterpret_cast<long*>(page);
  *number = 40;
  long other = 2;
  for (int i = 0; i < 20; ++i) {
    CHECK_EQ(mprotect(page, 4096, PROT_NONE), 0);
    CHECK_EQ(beside_call(number, &other), 42);
    CHECK_EQ(mprotect(page, 4096, PROT_NONE), 0);
    CHECK_EQ(beside_call(&other, number), skip_it ? 7 : 42);
  }
  CHECK_EQ(seen_before, 20);
  CHECK_EQ(seen_after, 20);
}

int main() {
  install_info(SIGSEGV, handler);
  join(start([] {}));
  body();
  seen_before = seen_after = 0;
  join(start(body));
  skip_it = true;
  join(start(body));
}
