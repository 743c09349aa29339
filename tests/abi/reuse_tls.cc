// abi: threads=350 reused=100
// Thread-local data is new in every thread, whatever threads before it have written: the program's, a linked
// library's, and that of a library loaded meanwhile. errno, h_errno and dlerror's message too.
#include <dlfcn.h>
#include <netdb.h>

#include "abi.h"

extern "C" int tls_library_fresh();

static __thread int64_t plain = 5;
static __thread char zeroed[200];
static __thread int* pointer = nullptr;
static thread_local int counted = [] { return 3; }();

static void dirty() {
  CHECK_EQ(plain, 5);
  for (char c : zeroed) CHECK_EQ(c, 0);
  CHECK(pointer == nullptr);
  CHECK_EQ(counted, 3);
  CHECK(tls_library_fresh());
  CHECK_EQ(errno, 0);
  CHECK_EQ(h_errno, 0);
  plain = -1;
  memset(zeroed, 1, sizeof zeroed);
  int local = 0;
  pointer = &local;
  counted = 4;
  errno = EIO;
  h_errno = 7;
}

int main() {
  for (int i = 0; i < 150; ++i) join(start(dirty));
  for (int round = 0; round < 10; ++round) {
    std::vector<pthread_t> threads;
    for (int i = 0; i < 10; ++i) threads.push_back(start(dirty));
    join_all(threads);
  }
  // A plugin with thread-local data, loaded after the first threads, and again.
  using Run = int(int);
  for (int round = 0; round < 3; ++round) {
    join(start([] {
      CHECK(dlerror() == nullptr);
      CHECK(dlopen("/nonexistent/library.so", RTLD_NOW) == nullptr);
    }));
    join(start([] { CHECK(dlerror() == nullptr); }));
    void* plugin = dlopen((executable_directory() + "/plugin.so").c_str(), RTLD_NOW);
    CHECK(plugin != nullptr);
    auto* run = reinterpret_cast<Run*>(dlsym(plugin, "plugin_run"));
    CHECK(run != nullptr);
    for (int i = 0; i < 5; ++i) CHECK_EQ(run(8), 40);
    join(start(dirty));
    CHECK_EQ(dlclose(plugin), 0);
    for (int i = 0; i < 5; ++i) join(start(dirty));
  }
}
