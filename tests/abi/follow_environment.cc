// abi: threads=1
// Upcall is carried into executed programs by the environment, as preloaded libraries are (ld.so(8)), by exec, posix_spawn, system and
// in children of children; where the program gives another one an environment without LD_PRELOAD it is not. With UPCALL_FOLLOW=0 the
// next program is the last one that is carried. On kernel threads nothing is carried anywhere.
#include <spawn.h>

#include "process.h"

namespace {

bool carried() {
  FILE* maps = fopen("/proc/self/maps", "r");
  CHECK(maps != nullptr);
  char line[4096];
  bool found = false;
  while (fgets(line, sizeof line, maps)) found = found || strstr(line, "/libupcall.so") != nullptr;
  fclose(maps);
  return found;
}

std::string self;

// Its result: what the program `steps` further says.
int run_self(const char* steps, char** environment) {
  const char* words[] = {self.c_str(), steps, nullptr};
  pid_t child = 0;
  CHECK_EQ(posix_spawn(&child, self.c_str(), nullptr, nullptr, const_cast<char**>(words), environment), 0);
  const int status = wait_status(child);
  CHECK(WIFEXITED(status));
  return WEXITSTATUS(status);
}

std::vector<char*> without(const char* name) {
  std::vector<char*> result;
  for (char** entry = environ; *entry; ++entry)
    if (strncmp(*entry, name, strlen(name)) != 0) result.push_back(*entry);
  result.push_back(nullptr);
  return result;
}

}  // namespace

int main(int count, char** arguments) {
  self = executable_directory() + "/follow_environment";
  join(start([] {}));
  if (count > 1) {
    const int steps = atoi(arguments[1]);
    if (steps == 0) return carried() ? 10 : 20;
    if (steps ==
        5) {  // not followed: nothing names it any more, the program itself has threads, and executes plain ones
      const char* list = getenv("LD_PRELOAD");
      CHECK(list == nullptr || strstr(list, "libupcall") == nullptr);
      CHECK(strcmp(getenv("UPCALL_FOLLOW"), "0") == 0);
      use_threads(2);
      wait_exit(start_child([] {
                  use_threads(2);
                  execl(self.c_str(), self.c_str(), "0", nullptr);
                }),
                20);
      execl(self.c_str(), self.c_str(), "0", nullptr);
    }
    return run_self(std::to_string(steps - 1).c_str(), environ);
  }
  const int here = carried() ? 10 : 20;
  CHECK_EQ(run_self("0", environ), here);
  CHECK_EQ(run_self("2", environ), here);
  CHECK_EQ(run_self("0", without("LD_PRELOAD=").data()), 20);
  char* empty[] = {nullptr};
  CHECK_EQ(run_self("0", empty), 20);
  CHECK_EQ(WEXITSTATUS(system((self + " 0").c_str())), here);
  wait_exit(start_child([] { execl(self.c_str(), self.c_str(), "0", nullptr); }), here);
  std::vector<char*> last = without("UPCALL_FOLLOW=");
  char no[] = "UPCALL_FOLLOW=0";
  last.insert(last.begin(), no);
  CHECK_EQ(run_self("0", last.data()), here);
  CHECK_EQ(run_self("1", last.data()), 20);
  CHECK_EQ(run_self("2", last.data()), 20);
  CHECK_EQ(run_self("5", last.data()), 20);
}
