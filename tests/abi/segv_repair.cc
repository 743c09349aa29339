// abi: threads=8
// A SIGSEGV handler on each thread's own alternate stack repairs the page and returns; the write then succeeds.
#include <sys/mman.h>

#include "abi.h"

static thread_local char* alternate = nullptr;
static thread_local void* page_address = nullptr;
static std::atomic<int> repaired{0};
constexpr size_t kAlternate = 64 * 1024;

static void handler(int, siginfo_t* info, void*) {
  char here;
  CHECK(&here >= alternate && &here < alternate + kAlternate);
  CHECK(info->si_addr == page_address);
  CHECK_EQ(info->si_code, SEGV_ACCERR);
  stack_t now;
  CHECK_EQ(sigaltstack(nullptr, &now), 0);
  CHECK_EQ(now.ss_flags & SS_ONSTACK, SS_ONSTACK);
  CHECK_EQ(mprotect(page_address, 4096, PROT_READ | PROT_WRITE), 0);
  ++repaired;
}

int main() {
  install_info(SIGSEGV, handler, SA_ONSTACK);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 8; ++i)
    threads.push_back(start([] {
      stack_t fresh;
      CHECK_EQ(sigaltstack(nullptr, &fresh), 0);
      CHECK_EQ(fresh.ss_flags, SS_DISABLE);
      alternate = static_cast<char*>(malloc(kAlternate));
      stack_t stack = {};
      stack.ss_sp = alternate;
      stack.ss_size = kAlternate;
      CHECK_EQ(sigaltstack(&stack, nullptr), 0);
      for (int round = 0; round < 20; ++round) {
        page_address = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(page_address != MAP_FAILED);
        *static_cast<volatile int*>(page_address) = round;
        CHECK_EQ(*static_cast<volatile int*>(page_address), round);
        sched_yield();
        stack_t now;
        CHECK_EQ(sigaltstack(nullptr, &now), 0);
        CHECK(now.ss_sp == alternate && now.ss_flags == 0);
        munmap(page_address, 4096);
      }
      stack.ss_flags = SS_DISABLE;
      CHECK_EQ(sigaltstack(&stack, nullptr), 0);
      free(alternate);
    }));
  join_all(threads);
  CHECK_EQ(repaired, 160);
}
