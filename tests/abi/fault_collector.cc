// abi: threads=6
// What runtimes with a garbage collector do with faults: implicit null checks (the handler goes on elsewhere), write
// barriers (the handler unprotects the page and notes it), a polling page that stops all threads at a safepoint inside
// the handler until the collector lets them go, forwarding addresses (the handler changes a register and repeats).
#include <sys/mman.h>
#include <ucontext.h>

#include "abi.h"

extern "C" {
extern const char null_check_at[], null_check_taken[], poll_at[], poll_end[], forward_at[];
long checked_read(const long* object);
void poll_safepoint(const char* page);
long forwarded_read(const long* object);
}

asm(R"(
        .globl checked_read, poll_safepoint, forwarded_read
        .type checked_read, @function
checked_read:
null_check_at:
        mov 16(%rdi), %rax
        ret
null_check_taken:
        mov $-7, %rax
        ret
        .size checked_read, . - checked_read
        .type poll_safepoint, @function
poll_safepoint:
poll_at:
        testb $1, (%rdi)
poll_end:
        ret
        .size poll_safepoint, . - poll_safepoint
        .type forwarded_read, @function
forwarded_read:
forward_at:
        mov (%rdi), %rax
        ret
        .size forwarded_read, . - forwarded_read
)");

constexpr size_t kPage = 4096, kPages = 64;
static char *heap, *poll_page, *old_space, *new_space;
static std::atomic<int> dirty[kPages], dirtied{0}, at_safepoint{0};
static std::atomic<uint32_t> released{0};
static std::atomic<bool> stop{false};
static constexpr int kMutators = 5;

static void handler(int, siginfo_t* info, void* raw) {
  greg_t* reg = static_cast<ucontext_t*>(raw)->uc_mcontext.gregs;
  const auto* at = reinterpret_cast<const char*>(reg[REG_RIP]);
  auto* address = static_cast<char*>(info->si_addr);
  if (at == null_check_at) {
    CHECK(address == reinterpret_cast<char*>(16));
    reg[REG_RIP] = reinterpret_cast<greg_t>(null_check_taken);
  } else if (at == poll_at) {
    CHECK(address == poll_page);
    const uint32_t seen = released;
    ++at_safepoint;
    while (released == seen) futex(&released, FUTEX_WAIT_PRIVATE, seen);
    --at_safepoint;  // the instruction is repeated, on a page that can be read again
  } else if (at == forward_at) {
    CHECK(address >= old_space && address < old_space + kPage);
    reg[REG_RDI] = reinterpret_cast<greg_t>(new_space + (address - old_space));
  } else {
    CHECK(address >= heap && address < heap + kPages * kPage);
    const size_t page = static_cast<size_t>(address - heap) / kPage;
    ++dirty[page];
    ++dirtied;
    CHECK_EQ(mprotect(heap + page * kPage, kPage, PROT_READ | PROT_WRITE), 0);
  }
}

static void mutate(int id) {
  uint32_t random = static_cast<uint32_t>(id) + 1;
  for (long n = 1; !stop; ++n) {
    random = random * 1664525 + 1013904223;
    const size_t page = (random >> 16) % kPages;
    auto* slot = reinterpret_cast<std::atomic<long>*>(heap + page * kPage) + id;
    slot->store(n);
    CHECK(slot->load() == n);
    if (n % 16 == 0) CHECK_EQ(checked_read(nullptr), -7);
    const long object[3] = {0, 0, n};
    CHECK_EQ(checked_read(object), n);
    if (n % 16 == 1) CHECK_EQ(forwarded_read(reinterpret_cast<long*>(old_space) + id), 100 + id);
    poll_safepoint(poll_page);
  }
}

static char* map(size_t bytes, int protection) {
  void* p = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED);
  return static_cast<char*>(p);
}

int main() {
  heap = map(kPages * kPage, PROT_READ | PROT_WRITE), poll_page = map(kPage, PROT_READ);
  old_space = map(kPage, PROT_NONE), new_space = map(kPage, PROT_READ | PROT_WRITE);
  for (int i = 0; i < kMutators; ++i) reinterpret_cast<long*>(new_space)[i] = 100 + i;
  install_info(SIGSEGV, handler, SA_NODEFER);
  std::vector<pthread_t> threads;
  for (int i = 0; i < kMutators; ++i) threads.push_back(start([i] { mutate(i); }));
  const pthread_t collector = start([] {
    for (int cycle = 0; cycle < 12; ++cycle) {
      CHECK_EQ(mprotect(poll_page, kPage, PROT_NONE), 0);
      while (at_safepoint < kMutators) nap(kMs / 5);
      // Nobody moves: the page is protected and what was written in this cycle is looked at.
      CHECK_EQ(mprotect(heap, kPages * kPage, PROT_READ), 0);
      for (auto& d : dirty) d = 0;
      CHECK_EQ(mprotect(poll_page, kPage, PROT_READ), 0);
      const int before = dirtied;
      ++released;
      futex(&released, FUTEX_WAKE_PRIVATE, 1000);
      while (at_safepoint > 0) nap(kMs / 5);
      while (dirtied == before) nap(kMs / 5);
    }
    stop = true;
  });
  join(collector);
  join_all(threads);
}
