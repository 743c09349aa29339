// abi: threads=21
// Libraries loaded later, by main and by a thread: their threads and their own `syscall` instructions are user-level
// threads' too; a constructor that starts a thread works under the loader's lock; dlclose, and loading again.
#include <dlfcn.h>

#include "abi.h"

static void* load(const char* name) {
  void* handle = dlopen((executable_directory() + "/" + name).c_str(), RTLD_NOW);
  if (handle == nullptr) FAIL("%s", dlerror());
  return handle;
}

template <class F>
static F* find(void* handle, const char* name) {
  void* symbol = dlsym(handle, name);
  CHECK(symbol != nullptr);
  return reinterpret_cast<F*>(symbol);
}

static void use_plugin() {
  void* plugin = load("plugin.so");
  CHECK_EQ(find<int(int)>(plugin, "plugin_run")(8), 40);
  CHECK_EQ(find<long()>(plugin, "plugin_gettid")(), gettid());
  CHECK_EQ(dlclose(plugin), 0);
}

int main() {
  use_plugin();
  join(start(use_plugin));
  for (int round = 0; round < 3; ++round) {
    void* eager = load("eager_plugin.so");
    auto* work = find<int()>(eager, "eager_work");
    while (work() == 0) sched_yield();
    CHECK_EQ(dlclose(eager), 0);
  }
  CHECK_EQ(find<long()>(load("plugin.so"), "plugin_gettid")(), getpid());
  join(start([] { CHECK_EQ(find<long()>(load("plugin.so"), "plugin_gettid")(), gettid()); }));
}
