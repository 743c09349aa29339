// abi: threads=12
// Another process moves all kernel threads of this one from CPU to CPU and stops and continues it, while its threads block,
// wait and compute: nothing is lost.
#include <dirent.h>
#include <sched.h>

#include "mixed.h"

static void move_all(pid_t process, const cpu_set_t& set) {
  const std::string path = "/proc/" + std::to_string(process) + "/task";
  DIR* directory = opendir(path.c_str());
  if (!directory) return;
  while (const dirent* entry = readdir(directory)) {
    const int id = atoi(entry->d_name);
    if (id > 0) sched_setaffinity(id, sizeof set, &set);
  }
  closedir(directory);
}

static void disturb(pid_t process) {
  cpu_set_t all;
  CPU_ZERO(&all);
  sched_getaffinity(process, sizeof all, &all);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all)) cpus.push_back(cpu);
  for (size_t i = 0; getppid() == process; ++i) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus[i % cpus.size()], &one);
    move_all(process, i % 3 == 2 ? all : one);
    nap(3 * kMs);
    if (i % 8 == 7) {
      kill(process, SIGSTOP);
      nap(2 * kMs);
      kill(process, SIGCONT);
    }
  }
  _exit(0);
}

int main() {
  const pid_t child = start_beside(disturb);
  mixed_work();
  end_beside(child);
}
