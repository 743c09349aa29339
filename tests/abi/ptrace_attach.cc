// abi: threads=12 timeout=60
// A tracer attaches to all kernel threads while threads block, wait and compute, interrupts them, follows their system calls as
// strace does, detaches, and comes again: nothing is lost.
#include <dirent.h>
#include <sys/ptrace.h>

#include <random>
#include <set>

#include "mixed.h"

static std::atomic<int>* rounds_done;

static long trace(__ptrace_request request, pid_t thread, long data = 0) {
  return ptrace(request, thread, nullptr, reinterpret_cast<void*>(data));
}

static void attach_all(pid_t process, std::set<pid_t>* traced) {
  const std::string path = "/proc/" + std::to_string(process) + "/task";
  DIR* directory = opendir(path.c_str());
  CHECK(directory != nullptr);
  while (const dirent* entry = readdir(directory)) {
    const pid_t id = atoi(entry->d_name);
    // New ones, and their own new ones, are attached by the kernel.
    if (id > 0 && trace(PTRACE_SEIZE, id, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE) == 0) {
      traced->insert(id);
      trace(PTRACE_INTERRUPT, id);
    }
  }
  closedir(directory);
}

// How a stopped kernel thread goes on: with the signal that it was to get, if any.
static long signal_of(int status) {
  const int signal = WSTOPSIG(status);
  return status >> 16 || signal == SIGTRAP || signal == (SIGTRAP | 0x80) ? 0 : signal;
}

static void round_of_tracing(pid_t process, bool follow_calls, int64_t ns) {
  std::set<pid_t> traced;
  attach_all(process, &traced);
  const int64_t end = now_ns() + ns;
  bool leaving = false;
  while (!traced.empty()) {
    if (!leaving && now_ns() > end) {
      leaving = true;
      for (pid_t id : traced) trace(PTRACE_INTERRUPT, id);
    }
    int status;
    const pid_t id = waitpid(-1, &status, __WALL | WNOHANG);
    if (id <= 0) {
      if (id < 0) break;
      nap(50'000);
      continue;
    }
    if (!WIFSTOPPED(status)) {
      traced.erase(id);
      continue;
    }
    traced.insert(id);  // a new one
    if (leaving) {
      trace(PTRACE_DETACH, id, signal_of(status));
      traced.erase(id);
    } else {
      trace(follow_calls ? PTRACE_SYSCALL : PTRACE_CONT, id, signal_of(status));
    }
  }
}

int main() {
  rounds_done = static_cast<std::atomic<int>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(rounds_done != MAP_FAILED);
  const pid_t child = start_beside([](pid_t process) {
    std::minstd_rand random(11);
    while (trace(PTRACE_SEIZE, process) != 0) {
      if (*rounds_done < 0) _exit(0);
      nap(kMs);
    }
    trace(PTRACE_INTERRUPT, process);
    int status;
    CHECK_EQ(waitpid(process, &status, __WALL), process);
    CHECK_EQ(trace(PTRACE_DETACH, process), 0);
    for (;;) {
      round_of_tracing(process, *rounds_done % 2 == 0, static_cast<int64_t>(random() % 20) * kMs);
      ++*rounds_done;
      nap(static_cast<int64_t>(random() % 5) * kMs);
    }
  });
  prctl(PR_SET_PTRACER, child);
  for (int i = 0; i < 100 && *rounds_done == 0; ++i) nap(10 * kMs);
  if (*rounds_done == 0) {
    *rounds_done = -1;
    end_beside(child);
    skip("tracing is not allowed here");
  }
  do mixed_work(50);
  while (*rounds_done < 20);
  // A tracer that dies lets go of all.
  end_beside(child);
  mixed_work(10);
}
