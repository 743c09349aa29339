// `upcall doctor`: this process among others: its scheduling class and weight, and whether CPUs are ever free.
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "doctor.h"
#include "settings.h"

namespace upcall::tool {
namespace {

using Level = Finding::Level;
using Clock = std::chrono::steady_clock;

constexpr size_t kMostProbedCpus = 4;
constexpr auto kPatience = std::chrono::milliseconds(100);
constexpr double kBusyMs = 5;
constexpr int kDeadline = 6;  // SCHED_DEADLINE; not in every header

std::string policy_name(int policy) {
  switch (policy) {
    case SCHED_OTHER:
      return "SCHED_OTHER";
    case SCHED_BATCH:
      return "SCHED_BATCH";
    case SCHED_IDLE:
      return "SCHED_IDLE";
    case SCHED_FIFO:
      return "SCHED_FIFO";
    case SCHED_RR:
      return "SCHED_RR";
    case kDeadline:
      return "SCHED_DEADLINE";
    default:
      return fmt::format("policy {}", policy);
  }
}

// On a kernel thread of its own, which takes the changed class with it.
int try_real_time(int priority) {
  int refused = 0;
  std::thread([&] {
    sched_param param = {};
    param.sched_priority = priority;
    if (sched_setscheduler(0, SCHED_FIFO, &param) != 0) refused = errno;
  }).join();
  return refused;
}

Finding probe_class() {
  int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  sched_param param = {};
  sched_getparam(0, &param);
  Finding f = {Level::good, "scheduling class", policy_name(policy),
               "kernel threads that run threads have it too", ""};
  if (policy == SCHED_IDLE) {
    f.level = Level::note;
    f.found += ": the sentinel cannot be below it";
    f.used = "the monitor finds blocked threads";
    f.cost = "blocking is noticed within milliseconds, not microseconds";
  } else if (policy == SCHED_FIFO || policy == SCHED_RR) {
    f.found += fmt::format(", priority {}", param.sched_priority);
    int above = std::min(param.sched_priority + 1, sched_get_priority_max(SCHED_FIFO));
    int refused = try_real_time(above);
    if (refused == 0 && above > param.sched_priority) {
      f.used = fmt::format("the monitor has priority {}", above);
    } else {
      f.level = Level::note;
      f.found += refused != 0 ? fmt::format("; priority {} is refused ({})", above, strerror(refused))
                              : ", the highest";
      f.used = "the monitor has the same priority";
      f.cost = "time slices, timers and signals wait where threads compute on every CPU";
    }
  } else if (policy == kDeadline) {
    f.level = Level::bad;
    f.used = "";
    f.cost = "such a process may not make kernel threads";
  }
  return f;
}

Finding probe_weight() {
  int nice_value = getpriority(PRIO_PROCESS, 0);
  int least = nice_value;
  std::thread([&] {
    for (int n = -20; n < nice_value && least == nice_value; ++n)
      if (setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), n) == 0) least = n;
  }).join();
  std::string found = fmt::format("nice {}, may become {}", nice_value, least);
  if (least < nice_value)
    return {Level::good, "weight", found, "--share threads works, --share process is the default", ""};
  return {Level::note, "weight", fmt::format("nice {}, may not be lowered (RLIMIT_NICE)", nice_value),
          "--share process", "beside other programs each processor counts as one kernel thread"};
}

// How long a SCHED_IDLE kernel thread waits for that CPU while this one sleeps, ms; negative: not allowed.
double idle_wait(int cpu) {
  std::mutex lock;
  std::condition_variable changed;
  enum { preparing, ready, go, done } state = preparing;
  bool refused = false;
  Clock::time_point ran;
  std::thread idle([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    std::unique_lock guard(lock);
    sched_param none = {};
    refused = sched_setscheduler(0, SCHED_IDLE, &none) != 0;
    state = ready;
    changed.notify_all();
    changed.wait(guard, [&] { return state == go; });
    ran = Clock::now();
    state = done;
    changed.notify_all();
  });
  std::unique_lock guard(lock);
  changed.wait(guard, [&] { return state == ready; });
  Clock::time_point begin = Clock::now();
  state = go;
  changed.notify_all();
  bool in_time = changed.wait_for(guard, kPatience, [&] { return state == done; });
  guard.unlock();
  idle.join();
  if (refused) return -1;
  return in_time ? std::chrono::duration<double, std::milli>(ran - begin).count()
                 : std::chrono::duration<double, std::milli>(kPatience).count();
}

Finding probe_busy() {
  double worst = 0;
  auto cpus = usable_cpus();
  for (size_t i = 0; i < std::min(cpus.size(), kMostProbedCpus); ++i) {
    double waited = idle_wait(cpus[i]);
    if (waited < 0)
      return {Level::good, "other programs", "not probed: SCHED_IDLE is refused", "monitor", ""};
    worst = std::max(worst, waited);
  }
  std::string found = fmt::format("a SCHED_IDLE kernel thread waits {}{:.2f} ms for a CPU",
                                  worst >= static_cast<double>(kPatience.count()) ? "over " : "", worst);
  if (worst < kBusyMs) return {Level::good, "other programs", found, "the sentinel is in time", ""};
  return {Level::note, "other programs", found + ": others keep CPUs busy",
          "the monitor finds blocked threads where the sentinel is late",
          "blocking is noticed within milliseconds, not microseconds"};
}

}  // namespace

std::vector<Finding> probe_others() { return {probe_class(), probe_weight(), probe_busy()}; }

}  // namespace upcall::tool
