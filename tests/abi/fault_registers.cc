// abi: threads=4
// sigaction(2), the handler of a fault: si_addr, si_code and the machine context are those of the instruction: REG_RIP,
// REG_RSP, REG_TRAPNO, REG_ERR, REG_CR2 and the general registers; what the handler writes there is what the thread goes
// on with. In many threads at once.
#include <sys/mman.h>
#include <ucontext.h>

#include "abi.h"

extern "C" {
extern const char fault_write_at[], fault_read_at[], fault_divide_at[], fault_ud_at[], fault_gp_at[],
    fault_after[];
long fault_probe(long which, void* address);
}

// rbx, r12 to r15 get marks; the fault's handler answers in rax and skips the instruction.
asm(R"(
        .globl fault_probe
        .type fault_probe, @function
fault_probe:
        push %rbx
        push %r12
        push %r13
        push %r14
        push %r15
        mov $0x1111, %rbx
        mov $0x2222, %r12
        mov $0x3333, %r13
        mov $0x4444, %r14
        mov $0x5555, %r15
        mov $0x6666, %r8
        xor %edx, %edx
        mov $77, %eax
        cmp $0, %rdi
        je fault_write_at
        cmp $1, %rdi
        je fault_read_at
        cmp $2, %rdi
        je fault_divide_at
        cmp $3, %rdi
        je fault_ud_at
fault_gp_at:
        mov (%rsi), %rax
        jmp fault_after
fault_write_at:
        mov %rax, (%rsi)
        jmp fault_after
fault_read_at:
        mov (%rsi), %rax
        jmp fault_after
fault_divide_at:
        div %rdx
        jmp fault_after
fault_ud_at:
        ud2
fault_after:
        pop %r15
        pop %r14
        pop %r13
        pop %r12
        pop %rbx
        ret
        .size fault_probe, . - fault_probe
)");

struct Expected {
  const char* at;
  int signal, code;
  long trap, error;  // -1: not looked at
  bool address;
};
static const Expected kExpected[] = {
    {fault_write_at, SIGSEGV, SEGV_ACCERR, 14, 7, true},  // write, user, present
    {fault_read_at, SIGSEGV, SEGV_MAPERR, 14, 4, true},
    {fault_divide_at, SIGFPE, FPE_INTDIV, 0, 0, false},
    {fault_ud_at, SIGILL, ILL_ILLOPN, 6, 0, false},
    {fault_gp_at, SIGSEGV, SI_KERNEL, 13, 0, false},  // an address that is not canonical
};

static thread_local const Expected* expected = nullptr;
static thread_local char* expected_address = nullptr;
static thread_local char* stack_mark = nullptr;

static void handler(int signal, siginfo_t* info, void* raw) {
  auto* context = static_cast<ucontext_t*>(raw);
  greg_t* reg = context->uc_mcontext.gregs;
  CHECK_EQ(signal, expected->signal);
  CHECK_EQ(info->si_signo, signal);
  CHECK_EQ(info->si_code, expected->code);
  CHECK(reinterpret_cast<const char*>(reg[REG_RIP]) == expected->at);
  CHECK_EQ(reg[REG_TRAPNO], expected->trap);
  CHECK_EQ(reg[REG_ERR], expected->error);
  if (expected->address) {
    CHECK(info->si_addr == expected_address);
    CHECK(reinterpret_cast<char*>(reg[REG_CR2]) == expected_address);
  } else if (expected->code != SI_KERNEL) {
    CHECK(info->si_addr == expected->at);
  } else {
    CHECK(info->si_addr == nullptr);
  }
  CHECK_EQ(reg[REG_RBX], 0x1111);
  CHECK_EQ(reg[REG_R12], 0x2222);
  CHECK_EQ(reg[REG_R13], 0x3333);
  CHECK_EQ(reg[REG_R14], 0x4444);
  CHECK_EQ(reg[REG_R15], 0x5555);
  CHECK_EQ(reg[REG_R8], 0x6666);
  CHECK_EQ(reg[REG_RAX], 77);
  auto* sp = reinterpret_cast<char*>(reg[REG_RSP]);
  CHECK(sp < stack_mark && sp > stack_mark - 1000);
  CHECK_EQ(reg[REG_CSGSFS] & 0xffff, 0x33);
  CHECK_EQ(reg[REG_EFL] & 0x202, 0x202);
  // Nothing of signals is blocked in the interrupted context.
  CHECK_EQ(sigismember(&context->uc_sigmask, signal), 0);
  reg[REG_RAX] = 1000 + signal;
  reg[REG_RIP] = reinterpret_cast<greg_t>(fault_after);
}

static void body() {
  char mark;
  stack_mark = &mark;
  auto* readable = static_cast<char*>(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(readable != MAP_FAILED);
  CHECK_EQ(*static_cast<volatile char*>(readable), 0);  // present from now on
  for (int round = 0; round < 100; ++round)
    for (int which = 0; which < 5; ++which) {
      expected = &kExpected[which];
      expected_address = which == 0   ? readable + 8 * (round % 500)
                         : which == 1 ? reinterpret_cast<char*>(uintptr_t{64} + static_cast<uintptr_t>(round))
                         : which == 4 ? reinterpret_cast<char*>(0x8000000000000000u)
                                      : nullptr;
      CHECK_EQ(fault_probe(which, expected_address), 1000 + expected->signal);
    }
  munmap(readable, 4096);
}

int main() {
  for (int signal : {SIGSEGV, SIGFPE, SIGILL}) install_info(signal, handler);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 4; ++i) threads.push_back(start(body));
  body();
  join_all(threads);
}
