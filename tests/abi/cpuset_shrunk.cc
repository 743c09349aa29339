// abi: threads=12 timeout=60
// The cpuset of a program on two CPUs shrinks to one, grows, shrinks to the other, while its threads block, wait and compute:
// it goes on with what it has, nothing is lost, and what it is told about its CPUs is so.
#include "cgroup.h"
#include "mixed.h"

static int cpus_now() {
  cpu_set_t set;
  CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return CPU_COUNT(&set);
}

int main() {
  cpu_set_t all;
  CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  std::vector<std::string> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE && cpus.size() < 2; ++cpu)
    if (CPU_ISSET(cpu, &all)) cpus.push_back(std::to_string(cpu));
  if (cpus.size() < 2) skip("two CPUs are needed");
  const std::string both = cpus[0] + "," + cpus[1];
  ControlGroup group("cpuset");
  group.set("cpuset.cpus", both);
  group.set("cpuset.mems", "0");
  group.enter();
  CHECK_EQ(cpus_now(), 2);
  std::atomic<bool> stop{false};
  std::atomic<int> changes{0};
  const pthread_t changing = start([&] {
    while (!stop) {
      for (const std::string& set : {cpus[0], both, cpus[1], both}) {
        group.set("cpuset.cpus", set);
        ++changes;
        nap(7 * kMs);
      }
    }
  });
  do mixed_work();
  while (changes < 8);
  stop = true;
  join(changing);
  group.set("cpuset.cpus", cpus[1]);
  CHECK_EQ(cpus_now(), 1);
  mixed_work();
  for (bool unseen : {false, true}) CHECK(longest_takeover(5, unseen) < kSecond);
  group.set("cpuset.cpus", both);
  CHECK_EQ(cpus_now(), 2);
  mixed_work();
}
