// abi: threads=8
// fork(2), clone(2): a child inherits the affinity mask, nice value and name of the thread that made it
// (sched_setaffinity(2), nice(2): "inherited by a child created by fork"; prctl(2) PR_SET_NAME), not those of others; so does
// what posix_spawn and vfork execute, but for the name.
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "process.h"

namespace {

cpu_set_t mask_of_self() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

cpu_set_t only(int wanted) {
  const cpu_set_t all = mask_of_self();
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0, n = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all) && n++ == wanted % CPU_COUNT(&all)) CPU_SET(cpu, &one);
  return one;
}

std::string name_of_self() {
  char name[17] = {};
  CHECK_EQ(prctl(PR_GET_NAME, name), 0);
  return name;
}

void become(int which) {
  const cpu_set_t one = only(which);
  CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  CHECK_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 3 + which), 0);
  CHECK_EQ(prctl(PR_SET_NAME, ("forker" + std::to_string(which)).c_str()), 0);
}

void check(int which, const cpu_set_t& mask, bool named) {
  const cpu_set_t now = mask_of_self();
  CHECK(CPU_EQUAL(&now, &mask));
  CHECK_EQ(getpriority(PRIO_PROCESS, 0), 3 + which);
  if (!named) return;
  CHECK(name_of_self() == "forker" + std::to_string(which));
  FILE* file = fopen("/proc/self/comm", "r");
  char text[32] = {};
  CHECK(file != nullptr && fgets(text, sizeof text, file) != nullptr);
  CHECK(std::string(text) == "forker" + std::to_string(which) + "\n");
  fclose(file);
}

void spawn(const std::string& self, int which, const cpu_set_t& mask) {
  int cpu = 0;
  while (!CPU_ISSET(cpu, &mask)) ++cpu;
  const std::string number = std::to_string(which), where = std::to_string(cpu);
  const char* words[] = {self.c_str(), number.c_str(), where.c_str(), nullptr};
  pid_t child = 0;
  CHECK_EQ(posix_spawn(&child, self.c_str(), nullptr, nullptr, const_cast<char**>(words), environ), 0);
  wait_exit(child, 0);
  child = vfork();
  if (child == 0) {
    execv(self.c_str(), const_cast<char**>(words));
    _exit(98);
  }
  wait_exit(child, 0);
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(atoi(arguments[2]), &mask);
    check(atoi(arguments[1]), mask, false);
    return 0;
  }
  const std::string self = executable_directory() + "/fork_attributes", name = name_of_self();
  Crowd crowd;
  const cpu_set_t before = mask_of_self();
  for (int which = 0; which < 2; ++which)
    join(start([which, &self] {
      const cpu_set_t mask = only(which);
      become(which);
      const auto in_child = [&] {
        check(which, mask, true);
        // Its own threads have it, too.
        join(start([&] { check(which, mask, true); }));
        check(which, mask, true);
        cpu_set_t every;
        memset(&every, 0xff, sizeof every);
        CHECK_EQ(sched_setaffinity(0, sizeof every, &every), 0);  // not held by the mask
      };
      run_child(in_child);
      spawn(self, which, mask);
    }));
  run_child([&] {
    const cpu_set_t now = mask_of_self();
    CHECK(CPU_EQUAL(&now, &before));
    CHECK(name_of_self() == name);
  });
  crowd.end();
}
