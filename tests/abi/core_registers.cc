// abi: threads=0
// core(5): the core file of a program with threads that dies by a signal shows the thread that died with the program's
// own registers: by abort(), by a fault, by raise, by a signal from outside while it is blocked in a read, sleeps or
// computes.
#include <elf.h>
#include <fcntl.h>
#include <sys/procfs.h>
#include <sys/resource.h>

#include "abi.h"

extern "C" {
extern const char core_fault_at[], core_loop_begin[], core_loop_end[];
void core_fault(void* address);
[[noreturn]] void core_loop();
}

asm(R"(
        .globl core_fault, core_loop
        .type core_fault, @function
core_fault:
        mov $0x1234, %r12
core_fault_at:
        mov %rax, (%rdi)
        ud2
        .size core_fault, . - core_fault
        .type core_loop, @function
core_loop:
        mov $0x4321, %r12
core_loop_begin:
        add $1, %r13
        jmp core_loop_begin
core_loop_end:
        .size core_loop, . - core_loop
)");

static std::string directory;

static bool pipes() {
  FILE* file = fopen("/proc/sys/kernel/core_pattern", "r");
  char first = '|';
  if (!file || fread(&first, 1, 1, file) != 1) return true;
  fclose(file);
  return first == '|' || first == '/';
}

// The first NT_PRSTATUS is that of the thread that died.
static prstatus_t dying_thread() {
  // core, or core.PID
  const std::string list = "ls " + directory + "/core* > " + directory + "/names";
  CHECK_EQ(system(list.c_str()), 0);
  FILE* names = fopen((directory + "/names").c_str(), "r");
  char path[512];
  CHECK(names && fgets(path, sizeof path, names));
  fclose(names);
  path[strcspn(path, "\n")] = 0;
  const int fd = open(path, O_RDONLY);
  CHECK(fd >= 0);
  Elf64_Ehdr header;
  CHECK_EQ(pread(fd, &header, sizeof header, 0), sizeof header);
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    const auto at = static_cast<off_t>(header.e_phoff + static_cast<size_t>(i) * sizeof segment);
    CHECK_EQ(pread(fd, &segment, sizeof segment, at), sizeof segment);
    if (segment.p_type != PT_NOTE) continue;
    Elf64_Nhdr note;
    CHECK_EQ(pread(fd, &note, sizeof note, static_cast<off_t>(segment.p_offset)), sizeof note);
    CHECK_EQ(note.n_type, NT_PRSTATUS);
    prstatus_t status;
    const size_t name = (note.n_namesz + 3) & ~3u;
    CHECK_EQ(pread(fd, &status, sizeof status, static_cast<off_t>(segment.p_offset + sizeof note + name)),
             sizeof status);
    close(fd);
    unlink(path);
    unlink((directory + "/names").c_str());
    return status;
  }
  FAIL("no notes in %s", path);
}

enum How { by_fault, by_raise, by_abort, in_loop, in_read, asleep };

static void child(How how, int ready) {
  CHECK_EQ(chdir(directory.c_str()), 0);
  const rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
  CHECK_EQ(setrlimit(RLIMIT_CORE, &all), 0);
  install(SIGQUIT, SIG_DFL);  // shells start what is in the background with it ignored
  sigset_t everything;
  sigfillset(&everything);
  const pthread_t bystander = start([&] {
    pthread_sigmask(SIG_BLOCK, &everything, nullptr);
    for (;;) pause();
  });
  const pthread_t victim = start([=] {
    CHECK_EQ(write(ready, "r", 1), 1);
    if (how == by_fault) core_fault(reinterpret_cast<void*>(uintptr_t{64}));
    if (how == by_raise) raise(SIGQUIT);
    if (how == by_abort) abort();
    if (how == in_loop) core_loop();
    char byte;
    static int never[2];
    CHECK_EQ(pipe(never), 0);
    if (how == in_read) CHECK_EQ(read(never[0], &byte, 1), 1);
    for (;;) nap(1000 * kSecond);
  });
  pthread_sigmask(SIG_BLOCK, &everything, nullptr);
  join(victim);
  join(bystander);
  _exit(1);
}

// It has said that it is about to, and may still be on its way.
static void wait_until_it_computes(pid_t pid) {
  clockid_t clock;
  CHECK_EQ(clock_getcpuclockid(pid, &clock), 0);
  for (const int64_t used = now_ns(clock); now_ns(clock) < used + 20 * kMs;) nap(kMs);
}

int main() {
  if (pipes()) skip("core files go elsewhere here");
  char name[] = "/tmp/abi_core_XXXXXX";
  CHECK(mkdtemp(name));
  directory = name;
  bool none = false;
  for (How how : {by_fault, by_raise, by_abort, in_loop, in_read, asleep}) {
    int ready[2];
    CHECK_EQ(pipe(ready), 0);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) child(how, ready[1]);
    char byte;
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    nap(3 * kMs);
    if (how == in_loop) wait_until_it_computes(pid);
    int expected = how == by_fault ? SIGSEGV : how == by_abort ? SIGABRT : SIGQUIT;
    if (how >= in_loop) CHECK_EQ(kill(pid, SIGQUIT), 0);
    const int status = wait_status(pid);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), expected);
    none = !WCOREDUMP(status);
    if (none) break;
    const prstatus_t thread = dying_thread();
    CHECK_EQ(thread.pr_cursig, expected);
    const auto* at = reinterpret_cast<const uint64_t*>(thread.pr_reg);
    constexpr int r12 = 3, rip = 16;  // of struct user_regs_struct
    const auto* pc = reinterpret_cast<const char*>(at[rip]);
    if (how == by_fault) {
      CHECK_EQ(at[r12], 0x1234);
      CHECK(pc == core_fault_at);
    } else if (how == in_loop) {
      CHECK_EQ(at[r12], 0x4321);
      CHECK(pc >= core_loop_begin && pc < core_loop_end);
    } else {
      // At the call in libc, or behind it: its code is where it is in this process.
      const auto distance = static_cast<long>(pc - reinterpret_cast<const char*>(&malloc));
      if (labs(distance) > 4 << 20)
        FAIL("how %d: died at %p, not in libc", how, static_cast<const void*>(pc));
    }
    close(ready[0]);
    close(ready[1]);
  }
  rmdir(name);
  if (none) skip("no core files here");
}
