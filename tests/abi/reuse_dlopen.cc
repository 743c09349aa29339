// abi: threads=200 reused=5
// A library with TLS of its own is loaded while other threads make threads: later threads have it fresh.
#include <dlfcn.h>

#include "abi.h"

int main() {
  for (int i = 0; i < 10; ++i) join(start([] {}));
  std::atomic<bool> stop{false};
  std::vector<pthread_t> makers;
  for (int i = 0; i < 2; ++i)
    makers.push_back(start([&] {
      while (!stop) join(start([] {}));
    }));
  settle();
  void* plugin = dlopen((executable_directory() + "/plugin.so").c_str(), RTLD_NOW);
  if (!plugin) FAIL("dlopen: %s", dlerror());
  auto run = reinterpret_cast<int (*)(int)>(dlsym(plugin, "plugin_run"));
  CHECK(run != nullptr);
  nap(kMs);
  stop = true;
  join_all(makers);
  for (int i = 0; i < 100; ++i) CHECK_EQ(run(1), 5);
}
