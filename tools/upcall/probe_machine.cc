// `upcall doctor`: kernel and processor. Each probe tries the thing itself where that is harmless.
#include <cpuid.h>
#include <fmt/format.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

#include "doctor.h"

namespace upcall::tool {
namespace {

using Level = Finding::Level;

// Newer than Debian 12's headers.
constexpr int kMadvGuardInstall = 102;
constexpr int kPrGetMdwe = 66;
constexpr unsigned long kHwcap2Fsgsbase = 1ul << 1;
constexpr uint64_t kSliceNs = 200'000;

struct SchedAttr {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime;
  uint64_t deadline;
  uint64_t period;
  uint32_t util_min;
  uint32_t util_max;
};
static_assert(sizeof(SchedAttr) == 56);

Finding probe_kernel() {
  utsname name = {};
  uname(&name);
  Finding f = {Level::good, "kernel", fmt::format("Linux {} {}", name.release, name.machine), "", ""};
  int major = 0;
  int minor = 0;
  bool parsed = sscanf(name.release, "%d.%d", &major, &minor) == 2;
  if (!parsed || major < 5 || (major == 5 && minor < 9)) {
    f.level = Level::bad;
    f.cost = "programs cannot run on Upcall; Linux 5.9 or later is needed";
  } else {
    f.used = "new enough (5.9 or later)";
  }
  if (strcmp(name.machine, "x86_64") != 0) {
    f.level = Level::bad;
    f.cost = "programs cannot run on Upcall; it is made for x86-64";
  }
  return f;
}

Finding probe_fsgsbase() {
  if ((getauxval(AT_HWCAP2) & kHwcap2Fsgsbase) != 0) {
    return {Level::good, "FSGSBASE", "enabled", "a switch writes the thread's FS base directly", ""};
  }
  return {Level::bad, "FSGSBASE", "not enabled (processor, or kernel option nofsgsbase)", "",
          "programs cannot run on Upcall"};
}

Finding probe_vector_state() {
  Finding f = {Level::good, "vector state", "", "", ""};
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  __cpuid(1, a, b, c, d);
  uint32_t enabled = 0x3;  // without OSXSAVE: x87 and SSE
  if ((c & bit_OSXSAVE) != 0) {
    uint32_t high = 0;
    asm volatile("xgetbv" : "=a"(enabled), "=d"(high) : "c"(0));
  }
  if ((enabled & 0xe0) == 0xe0) {
    f.found = "SSE, AVX, AVX-512 (XCR0)";
    f.used = "32 zmm and 8 mask registers are kept across substituted calls";
  } else if ((enabled & 0x4) != 0) {
    f.found = "SSE, AVX (XCR0)";
    f.used = "16 ymm registers are kept across substituted calls";
  } else {
    f.found = "SSE (XCR0)";
    f.used = "16 xmm registers are kept across substituted calls";
  }
  return f;
}

Finding probe_guard() {
  Finding f = {Level::good, "MADV_GUARD_INSTALL", "works", "stack guards that do not split mappings", ""};
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || madvise(memory, page, kMadvGuardInstall) != 0) {
    f = {Level::note, "MADV_GUARD_INSTALL", fmt::format("{} (Linux 6.13 or later has it)", strerror(errno)),
         "PROT_NONE pages as stack guards",
         "each guard splits a mapping: vm.max_map_count bounds the threads alive at once"};
  }
  if (memory != MAP_FAILED) munmap(memory, 2 * page);
  return f;
}

Finding probe_membarrier() {
  long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  if (commands >= 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0) {
    return {Level::good, "membarrier", "PRIVATE_EXPEDITED works", "one-sided fences between processors", ""};
  }
  return {Level::note, "membarrier", fmt::format("PRIVATE_EXPEDITED refused ({})", strerror(errno)),
          "full fences", "a few ns more at each operation on a ready queue"};
}

// On a kernel thread of its own, which takes the changed attribute with it.
Finding probe_slice() {
  bool kept = false;
  int error = 0;
  std::thread([&] {
    SchedAttr attr = {};
    attr.size = sizeof attr;
    attr.runtime = kSliceNs;
    if (syscall(SYS_sched_setattr, 0, &attr, 0) != 0) {
      error = errno;
      return;
    }
    SchedAttr back = {};
    kept = syscall(SYS_sched_getattr, 0, &back, sizeof back, 0) == 0 && back.runtime == kSliceNs;
  }).join();
  if (kept)
    return {Level::good, "scheduler slice", "sched_setattr keeps a slice of its own",
            "shorter reaction of helpers", ""};
  return {Level::note, "scheduler slice",
          error != 0 ? fmt::format("sched_setattr: {}", strerror(error))
                     : "not kept (Linux 6.12 or later keeps it)",
          "the kernel's slice", "helpers react later when the CPUs are busy with other programs"};
}

// What the sentinel needs: SCHED_IDLE, its own descriptor table with /proc in it, and a policy of ours that it is below.
Finding probe_events() {
  Finding f = {Level::good, "event source", "",
               "sentinel: blocking that no call announces is noticed in microseconds", ""};
  std::string monitor = "monitor: blocking that no call announces is noticed within a time slice";
  int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  int refused = 0;
  std::thread([&] {
    sched_param none = {};
    if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) refused = errno;
  }).join();
  if (refused != 0) {
    f = {Level::note, "event source", fmt::format("SCHED_IDLE is refused ({})", strerror(refused)), monitor,
         ""};
  } else if (policy == SCHED_IDLE) {
    f = {Level::note, "event source",
         "this process runs as SCHED_IDLE itself, the sentinel has its CPU no sooner than others", monitor,
         ""};
  } else if (access("/proc/self/task", R_OK | X_OK) != 0) {
    f.found = fmt::format("SCHED_IDLE is allowed; /proc/self/task cannot be read ({})", strerror(errno));
    f.used = "sentinel, judging by CPU time alone";
  } else {
    f.found = "SCHED_IDLE is allowed, /proc/self/task can be read";
  }
  return f;
}

Finding probe_rseq() {
  // Length 0 is refused with EINVAL where the call exists.
  bool exists = syscall(SYS_rseq, nullptr, 0, 0, 0) != 0 && errno == EINVAL;
  if (exists) return {Level::good, "rseq", "supported", "kept from threads; glibc falls back to getcpu", ""};
  return {Level::note, "rseq", fmt::format("not available ({})", strerror(errno)), "nothing in its place",
          "none for programs; a CPU mask changed from outside is noticed later"};
}

// What the substitution engine does: write to code, then execute it again.
Finding probe_code_patching() {
  Finding f = {Level::good, "code patching", "code pages can be made writable and executable again",
               "system calls are substituted in place", ""};
  long mdwe = prctl(kPrGetMdwe, 0, 0, 0, 0);
  if (mdwe > 0 && (mdwe & 1) != 0) {
    return {Level::bad, "code patching", "forbidden (memory-deny-write-execute is set for this process)", "",
            "programs cannot run on Upcall; start it without MDWE (systemd: MemoryDenyWriteExecute=no)"};
  }
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  FILE* self = fopen("/proc/self/exe", "re");
  void* code =
      self == nullptr ? MAP_FAILED : mmap(nullptr, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(self), 0);
  bool works = code != MAP_FAILED && mprotect(code, page, PROT_READ | PROT_WRITE) == 0;
  if (works) {
    *static_cast<volatile unsigned char*>(code) = 0x90;
    works = mprotect(code, page, PROT_READ | PROT_EXEC) == 0;
  }
  int error = errno;
  if (code != MAP_FAILED) munmap(code, page);
  if (self != nullptr) fclose(self);
  if (works) return f;
  return {Level::bad, "code patching",
          fmt::format("refused ({}), perhaps by a security module", strerror(error)), "",
          "programs cannot run on Upcall"};
}

// Shadow stacks see switches as attacks.
Finding probe_shadow_stack() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("x86_Thread_features:") && line.find("shstk") != std::string::npos) {
      return {Level::bad, "shadow stack", "on for this process", "",
              "programs cannot run on Upcall; unset GLIBC_TUNABLES=glibc.cpu.x86_shstk"};
    }
  }
  return {Level::good, "shadow stack", "off", "nothing to do", ""};
}

}  // namespace

std::vector<Finding> probe_machine() {
  return {probe_kernel(),     probe_fsgsbase(),      probe_vector_state(), probe_guard(),
          probe_membarrier(), probe_slice(),         probe_events(),       probe_bpf(),
          probe_rseq(),       probe_code_patching(), probe_shadow_stack()};
}

}  // namespace upcall::tool
