// abi: threads=2
// /proc/self is that of the program: status, stat, maps, and thread names through pthread_setname_np, for itself
// and for others.
#include <fstream>
#include <sstream>

#include "abi.h"

static std::string slurp(const std::string& path) {
  std::ifstream file(path);
  if (!file) FAIL("cannot open %s", path.c_str());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

static void check() {
  CHECK_EQ(atoi(slurp("/proc/self/stat").c_str()), getpid());
  CHECK(slurp("/proc/self/status").find("Pid:\t" + std::to_string(getpid())) != std::string::npos);
  CHECK(slurp("/proc/self/maps").find("[stack]") != std::string::npos);
  CHECK(!slurp("/proc/self/cmdline").empty());
}

int main() {
  check();
  std::atomic<int> step{0};
  const pthread_t thread = start([&step] {
    check();
    CHECK_EQ(pthread_setname_np(pthread_self(), "own name"), 0);
    char name[16] = {};
    CHECK_EQ(pthread_getname_np(pthread_self(), name, sizeof name), 0);
    CHECK(strcmp(name, "own name") == 0);
    step = 1;
    while (step < 2) nap(kMs);
    CHECK_EQ(pthread_getname_np(pthread_self(), name, sizeof name), 0);
    CHECK(strcmp(name, "given name") == 0);
  });
  while (step < 1) nap(kMs);
  char name[16] = {};
  CHECK_EQ(pthread_getname_np(thread, name, sizeof name), 0);
  CHECK(strcmp(name, "own name") == 0);
  CHECK_EQ(pthread_setname_np(thread, "given name"), 0);
  CHECK_EQ(pthread_setname_np(thread, "a name that is far too long"), ERANGE);
  step = 2;
  join(thread);
  CHECK_EQ(pthread_getname_np(pthread_self(), name, sizeof name), 0);
  CHECK(strncmp(name, "proc_files", sizeof name) == 0);
  join(start([] {
    char own[16] = {};
    CHECK_EQ(pthread_getname_np(pthread_self(), own, sizeof own), 0);
    CHECK(strcmp(own, "proc_files") == 0);
  }));
}
