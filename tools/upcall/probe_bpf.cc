// `upcall doctor`: can the runtime read the kernel's scheduler events (--events bpf)? Loads the programs as the runtime does.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "doctor.h"
#include "kernel/bpf/switches.h"

namespace upcall::tool {
namespace {

// CAP_SYS_ADMIN stands for both.
bool has_capabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  auto has = [&](unsigned c) { return ((data[c / 32].effective >> (c % 32)) & 1) != 0; };
  return has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_PERFMON));
}

// Why the kernel may have refused, the likeliest first.
std::string reason(long error, const char* refused) {
  if (error == ENOSYS) return "this build has no BPF part (clang, bpftool or libbpf-dev was missing)";
  if (!has_capabilities()) return "CAP_BPF and CAP_PERFMON are missing";
  if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
    return "the kernel has no BTF type information (/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF)";
  if (error == EPERM && prctl(PR_GET_SECCOMP) != 0) return "bpf(2) is refused by a seccomp filter";
  return fmt::format("refused: {} ({})", refused, strerror(static_cast<int>(error)));
}

}  // namespace

Finding probe_bpf() {
  long error = 0;
  const char* refused = "";
  // The descriptors that keep the programs end with this thread's table.
  std::thread([&] {
    if (fcntl(0, F_GETFD) < 0) open("/", O_PATH);
    switch_table* table = nullptr;
    error = unshare(CLONE_FILES) != 0 ? errno : -upcall_load_switches(&table, &refused);
  }).join();
  if (error != 0) {
    return {Finding::Level::note, "scheduler events", reason(error, refused),
            "the sentinel judges by CPU clocks and /proc",
            "blocking that no call announces is noticed later beside busy programs"};
  }
  return {Finding::Level::good, "scheduler events", "BPF programs load, events arrive", "by --events bpf",
          ""};
}

}  // namespace upcall::tool
