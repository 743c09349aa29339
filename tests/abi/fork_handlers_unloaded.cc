// abi: threads=6
// pthread_atfork in a dlopened object: its handlers run in their place, also for a fork in another thread, and no more once
// the object is unloaded (glibc takes back what belongs to it). system, popen and posix_spawn run none (posix_spawn(3)).
#include <dlfcn.h>
#include <spawn.h>

#include "process.h"

static int order = 0, mine_prepared = 0, mine_child = 0;

int main() {
  Crowd crowd;
  CHECK_EQ(pthread_atfork([] { mine_prepared = ++order; }, nullptr, [] { mine_child = ++order; }), 0);
  const std::string path = executable_directory() + "/forking_plugin.so";
  for (int round = 0; round < 2; ++round) {
    void* object = dlopen(path.c_str(), RTLD_NOW);
    if (object == nullptr) FAIL("%s", dlerror());
    auto* enter = reinterpret_cast<int (*)(int*)>(dlsym(object, "plugin_register"));
    const auto* prepared = static_cast<int*>(dlsym(object, "plugin_prepared"));
    const auto* parent = static_cast<int*>(dlsym(object, "plugin_parent"));
    const auto* child = static_cast<int*>(dlsym(object, "plugin_child"));
    CHECK(enter != nullptr && prepared != nullptr && parent != nullptr && child != nullptr);
    CHECK_EQ(enter(&order), 0);
    order = 0;
    join(start([&] {
      run_child([&] {
        CHECK_EQ(*prepared, 1);
        CHECK_EQ(mine_prepared, 2);
        CHECK_EQ(mine_child, 3);
        CHECK_EQ(*child, 4);
        CHECK_EQ(*parent, 0);
      });
      CHECK_EQ(*prepared, 1);
      CHECK_EQ(*parent, 3);
      CHECK_EQ(*child, 0);
    }));
    CHECK_EQ(dlclose(object), 0);
    CHECK(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD) == nullptr);
    order = 0;
    run_child([&] { CHECK_EQ(mine_prepared, 1); });
    CHECK_EQ(order, 1);
  }
  order = 0;
  CHECK_EQ(system("true"), 0);
  pid_t child;
  const char* words[] = {"true", nullptr};
  CHECK_EQ(posix_spawnp(&child, "true", nullptr, nullptr, const_cast<char**>(words), environ), 0);
  wait_exit(child, 0);
  FILE* stream = popen("true", "r");
  CHECK_EQ(pclose(stream), 0);
  CHECK_EQ(order, 0);
  crowd.end();
}
