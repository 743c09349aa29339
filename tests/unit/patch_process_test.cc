// The engine on whole processes and real libraries, each time in a child process of its own.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/log.h"
#include "linux/patch/patch.h"
#include "patch_child.h"

namespace {

using upcall::patch::Phase;
using upcall::patch::Totals;

void* add_one(void* p) {
  *static_cast<long*>(p) += 1;
  return p;
}

// Calls of libc that pass through most kinds of sites; false if any result is wrong.
bool workload() {
  if (getpid() <= 0 || getppid() <= 0) return false;
  std::FILE* f = std::tmpfile();
  if (!f || std::fprintf(f, "%d %s\n", 42, "text") != 8 || std::fflush(f) || std::fseek(f, 0, SEEK_SET)) return false;
  char line[32];
  if (!std::fgets(line, sizeof line, f) || std::strcmp(line, "42 text\n") != 0) return false;
  std::fclose(f);
  for (size_t n = 1; n < (64u << 20); n *= 4) {
    char* p = static_cast<char*>(std::malloc(n));
    if (!p) return false;
    p[n - 1] = 1;
    std::free(p);
  }
  long value = 0;
  for (int i = 0; i < 20; ++i) {
    pthread_t t;
    void* result;
    if (pthread_create(&t, nullptr, add_one, &value) || pthread_join(t, &result) || result != &value) return false;
  }
  int status;
  pid_t pid = fork();
  if (pid == 0) _exit(7);
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 7) return false;
  std::FILE* shell = popen("echo hello", "r");
  if (!shell || !std::fgets(line, sizeof line, shell) || std::strcmp(line, "hello\n") != 0 || pclose(shell)) return false;
  void* lib = dlopen("libm.so.6", RTLD_NOW);
  return lib && dlclose(lib) == 0 && value == 20;
}

bool all_numbers(long) { return true; }

TEST(PatchProcess, LibcAndDynamicLinkerWorkWithEverySiteRedirected) {
  EXPECT_EQ(0, in_child([] {
    if (getenv("UPCALL_LOG")) upcall::g_log_topics = 1;
    upcall::patch::configure({reinterpret_cast<void*>(&patch_test_entry), all_numbers});
    patch_test_set_gs(1);
    upcall::patch::patch_process(Phase::thread_creation);
    Totals first = upcall::patch::totals();
    fprintf(stderr, "first: %lu candidates, %lu patched, %lu deferred, %lu us\n", first.candidates, first.patched,
            first.deferred, first.nanoseconds / 1000);
    upcall::patch::patch_process(Phase::all);
    Totals t = upcall::patch::totals();
    fprintf(stderr, "all: %lu candidates, %lu patched, %lu plain, %lu not code, %lu unpatched, %lu us\n", t.candidates,
            t.patched, t.left_plain, t.not_code, t.unpatched, t.nanoseconds / 1000);
    unsigned long before = patch_test_calls;
    if (!workload()) return 2;
    if (patch_test_calls - before < 100) return 3;
    if (first.patched == 0 || first.deferred == 0) return 4;
    if (t.deferred != 0 || t.patched <= first.patched) return 5;
    if (t.unpatched != 0) return 6;
    return 0;
  }));
}

}  // namespace
