// abi: threads=16
// Threads that fault at once, by the thousand, in several ways, each repaired by its own handler: emulated (the handler
// does what the instruction would have done and steps over it), restarted, and single-stepped with the trap flag as
// debuggers and checkers do. Every thread gets its own faults and nobody else's.
#include <sys/mman.h>
#include <ucontext.h>

#include "abi.h"

static thread_local char* page = nullptr;
static thread_local int faults = 0, traps = 0, divisions = 0;

// mov %eax, (%rdi) and mov (%rdi), %eax: two bytes each.
static void on_fault(int, siginfo_t* info, void* raw) {
  greg_t* reg = static_cast<ucontext_t*>(raw)->uc_mcontext.gregs;
  const auto* at = reinterpret_cast<const unsigned char*>(reg[REG_RIP]);
  auto* address = static_cast<char*>(info->si_addr);
  CHECK(address >= page && address < page + 4096);
  ++faults;
  if (at[0] == 0x89 && at[1] == 0x07) {
    reg[REG_R11] = static_cast<uint32_t>(reg[REG_RAX]);
    reg[REG_RIP] += 2;
  } else if (at[0] == 0x8b && at[1] == 0x07) {
    reg[REG_RAX] = address - page;
    reg[REG_RIP] += 2;
  } else {
    // Any other: let it through, and protect again one instruction later.
    CHECK_EQ(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
    reg[REG_EFL] |= 0x100;
  }
}

static void on_trap(int, siginfo_t* info, void* raw) {
  greg_t* reg = static_cast<ucontext_t*>(raw)->uc_mcontext.gregs;
  CHECK_EQ(info->si_code, TRAP_TRACE);
  ++traps;
  CHECK_EQ(mprotect(page, 4096, PROT_NONE), 0);
  reg[REG_EFL] &= ~0x100;
}

static void on_division(int, siginfo_t*, void* raw) {
  greg_t* reg = static_cast<ucontext_t*>(raw)->uc_mcontext.gregs;
  ++divisions;
  reg[REG_RCX] = 3;
}

static void body(int id) {
  page = static_cast<char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(page != MAP_FAILED);
  for (int round = 0; round < 40; ++round) {
    uint64_t written;
    const uint32_t value = static_cast<uint32_t>(id * 1000 + round);
    asm volatile("mov %%eax, (%%rdi)\n\tmov %%r11, %0"
                 : "=r"(written)
                 : "a"(value), "D"(page)
                 : "r11", "memory");
    CHECK_EQ(written, value);
    uint32_t read;
    asm volatile("mov (%%rdi), %%eax" : "=a"(read) : "D"(page + 4 * round) : "memory");
    CHECK_EQ(read, 4 * round);
    asm volatile("addq $5, 8(%0)" ::"r"(page) : "memory", "cc");
    uint32_t quotient;
    asm volatile("xor %%edx, %%edx\n\txor %%ecx, %%ecx\n\tdiv %%ecx"
                 : "=a"(quotient)
                 : "a"(30)
                 : "ecx", "edx", "cc");
    CHECK_EQ(quotient, 10);
  }
  CHECK_EQ(mprotect(page, 4096, PROT_READ), 0);
  CHECK_EQ(*reinterpret_cast<long*>(page + 8), 200);
  CHECK_EQ(faults, 120);
  CHECK_EQ(traps, 40);
  CHECK_EQ(divisions, 40);
}

int main() {
  install_info(SIGSEGV, on_fault);
  install_info(SIGTRAP, on_trap);
  install_info(SIGFPE, on_division);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 16; ++i) threads.push_back(start([i] { body(i); }));
  join_all(threads);
}
