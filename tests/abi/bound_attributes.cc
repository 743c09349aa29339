// abi: threads=6 bound=6 counters=bound_threads:4-
// What a bound thread asks the kernel about itself by its id, and what it sets for itself and for others.
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>

#include "abi.h"

namespace {

struct Attributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

Attributes own_attributes() {
  Attributes a = {};
  CHECK_EQ(syscall(SYS_sched_getattr, 0, &a, sizeof a, 0), 0);
  return a;
}

void same_capabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2], again[2];
  CHECK_EQ(syscall(SYS_capget, &header, data), 0);
  header.pid = gettid();
  CHECK_EQ(syscall(SYS_capget, &header, again), 0);
  CHECK(memcmp(data, again, sizeof data) == 0);
  CHECK_EQ(syscall(SYS_capset, &header, data), 0);
  CHECK_EQ(header.pid, gettid());
  header.version = 1;
  CHECK_ERRNO(syscall(SYS_capset, &header, data), EINVAL);
  CHECK_EQ(header.version, _LINUX_CAPABILITY_VERSION_3);
  CHECK_ERRNO(syscall(SYS_capset, nullptr, data), EFAULT);
}

}  // namespace

int main() {
  std::atomic<bool> stop{false};
  std::atomic<pid_t> other{0};
  const pthread_t sleeper = start([&] {
    other = gettid();
    while (!stop) nap(kMs);
  });
  join(start(same_capabilities));
  join(start([] {
    const Attributes a = {sizeof a, SCHED_BATCH, 0, 7, 0, 0, 0, 0};
    CHECK_EQ(syscall(SYS_sched_setattr, gettid(), &a, 0), 0);
    CHECK_EQ(sched_getscheduler(0), SCHED_BATCH);
    CHECK_EQ(getpriority(PRIO_PROCESS, 0), 7);
    CHECK_EQ(own_attributes().policy, SCHED_BATCH);
    sched_param param = {0};
    CHECK_EQ(sched_setparam(0, &param), 0);
    // Its threads begin as it is.
    join(start([] { CHECK_EQ(own_attributes().nice, 7); }));
  }));
  join(start([&] {
    CHECK_EQ(unshare(CLONE_FS), 0);
    CHECK_EQ(setpriority(PRIO_PROCESS, 0, 10), 0);
    while (other == 0) nap(kMs);
    if (setpriority(PRIO_PROCESS, other, -5) != 0) CHECK(errno == EACCES || errno == EPERM);
    CHECK_EQ(own_attributes().nice, 10);
    CHECK_EQ(getpriority(PRIO_PROCESS, gettid()), 10);
  }));
  // A kernel thread's child that the kernel does not allow is not made.
  join(start([] {
    if (unshare(CLONE_NEWPID) != 0) {
      CHECK_EQ(errno, EPERM);
      return;
    }
    pthread_t thread;
    CHECK_EQ(pthread_create(
                 &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr),
             EINVAL);
  }));
  stop = true;
  join(sleeper);
}
