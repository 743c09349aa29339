// abi: threads=1
// LD_PRELOAD (ld.so(8)) with another library, here jemalloc: kept in its place by programs that are followed and by those that are
// not, the library is loaded and its malloc used, with threads, forks and executed programs.
#include <dlfcn.h>
#include <malloc.h>

#include "process.h"

namespace {

std::string self;
const char* jemalloc = "libjemalloc.so.2";

bool loaded() { return dlsym(RTLD_DEFAULT, "mallctl") != nullptr; }

std::string others() {
  const char* list = getenv("LD_PRELOAD");
  std::string result;
  for (const char* at = list ? list : ""; *at;) {
    const size_t length = strcspn(at, ": ");
    const std::string entry(at, length);
    if (length && entry.find("libupcall.so") == std::string::npos) result += entry + ";";
    at += length + (at[length] != 0);
  }
  return result;
}

int second(int steps) {
  if (!loaded()) _exit(kSkip);
  CHECK(others() == std::string(jemalloc) + ";libm.so.6;");
  use_threads(2);
  std::vector<pthread_t> threads;
  for (int i = 0; i < 3; ++i)
    threads.push_back(start([] {
      std::vector<void*> blocks;
      for (size_t n = 1; n < 300; ++n) blocks.push_back(malloc(n * 41 % 4000 + 1));
      for (void* block : blocks) {
        CHECK(malloc_usable_size(block) > 0);
        free(block);
      }
    }));
  join_all(threads);
  run_child([] {
    free(malloc(100'000));
    use_threads(2);
  });
  if (steps == 0) return 33;
  execl(self.c_str(), self.c_str(), "0", nullptr);
  return 99;
}

}  // namespace

int main(int count, char** arguments) {
  self = executable_directory() + "/follow_preload";
  join(start([] {}));
  if (count > 1) return second(atoi(arguments[1]));
  const char* given = getenv("LD_PRELOAD");
  const std::string first = given ? std::string(given) + ":" : "";
  for (const char* follow : {"1", "0"})
    for (const char* steps : {"0", "1"}) {
      const pid_t child = start_child([&] {
        const std::string both = first + jemalloc + " libm.so.6";
        setenv("LD_PRELOAD", both.c_str(), 1);
        setenv("UPCALL_FOLLOW", follow, 1);
        execl(self.c_str(), self.c_str(), steps, nullptr);
      });
      const int status = wait_status(child);
      if (status == kSkip << 8) skip("libjemalloc2 is not installed");
      CHECK_EQ(status, 33 << 8);
    }
}
