// The engine on whole processes and real libraries, each time in a child process of its own.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "linux/patch/maps.h"
#include "linux/patch/patch.h"
#include "patch_child.h"

namespace {

using upcall::patch::Mapping;
using upcall::patch::Maps;
using upcall::patch::Phase;
using upcall::patch::Totals;

void* add_one(void* p) {
  *static_cast<long*>(p) += 1;
  return p;
}

// Calls of libc that pass through most kinds of sites; 0 if every result is right, else which was wrong.
int workload() {
  if (getpid() <= 0 || getppid() <= 0) return 50;
  std::FILE* f = std::tmpfile();
  if (!f || std::fprintf(f, "%d %s\n", 42, "text") != 8 || std::fflush(f) || std::fseek(f, 0, SEEK_SET))
    return 51;
  char line[32];
  if (!std::fgets(line, sizeof line, f) || std::strcmp(line, "42 text\n") != 0) return 52;
  std::fclose(f);
  for (size_t n = 1; n < (64u << 20); n *= 4) {
    char* p = static_cast<char*>(std::malloc(n));
    if (!p) return 53;
    p[n - 1] = 1;
    std::free(p);
  }
  long value = 0;
  for (int i = 0; i < 20; ++i) {
    pthread_t t;
    void* result;
    if (pthread_create(&t, nullptr, add_one, &value) || pthread_join(t, &result) || result != &value)
      return 54;
  }
  int status;
  pid_t pid = fork();
  if (pid == 0) _exit(7);
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 7) return 55;
  std::FILE* shell = popen("echo hello", "r");
  if (!shell || !std::fgets(line, sizeof line, shell) || std::strcmp(line, "hello\n") != 0 || pclose(shell))
    return 56;
  void* lib = dlopen("libm.so.6", RTLD_NOW);
  return lib && dlclose(lib) == 0 && value == 20 ? 0 : 57;
}

bool every_number(long) { return true; }

void configure() {
  upcall::patch::configure({reinterpret_cast<void*>(&patch_test_entry), every_number});
  patch_test_set_gs(1);
}

// The executable code of a loaded object, by part of its path.
std::vector<uint8_t> code_of(const char* name, uintptr_t* start = nullptr) {
  Maps maps;
  maps.read();
  std::vector<uint8_t> code;
  for (const Mapping& m : maps.all()) {
    if (!(m.prot & PROT_EXEC) || !std::strstr(maps.path(m), name)) continue;
    if (start && code.empty()) *start = m.start;
    code.insert(code.end(), reinterpret_cast<uint8_t*>(m.start), reinterpret_cast<uint8_t*>(m.end));
  }
  maps.release();
  return code;
}

TEST(PatchProcess, LibcAndDynamicLinkerWorkWithEverySiteRedirected) {
  int failed = in_child([] {
    configure();
    upcall::patch::patch_process(Phase::all);
    Totals t = upcall::patch::totals();
    if (t.candidates == 0 || t.deferred != 0) return 1;
    if (t.unpatched != 0 || t.critical_unpatched != 0) return 2;
    unsigned long before = patch_test_calls;
    if (int wrong = workload()) return wrong;
    // 20 threads alone take more than 100 calls.
    return patch_test_calls - before >= 100 ? 0 : 3;
  });
  EXPECT_EQ(0, failed);
}

TEST(PatchProcess, ThreadCreationPhaseRedirectsCloneAndUnknownNumbersOnly) {
  int failed = in_child([] {
    configure();
    upcall::patch::patch_process(Phase::thread_creation);
    Totals first = upcall::patch::totals();
    if (first.patched == 0 || first.deferred <= first.patched) return 1;
    patch_test_calls = 0;
    for (int i = 0; i < 10; ++i) getpid();
    if (patch_test_calls != 0) return 2;  // a constant that makes no thread
    if (syscall(SYS_getppid) <= 0 || patch_test_calls != 1 || patch_test_last != SYS_getppid) return 3;
    pthread_t t;
    long value = 0;
    if (pthread_create(&t, nullptr, add_one, &value) || pthread_join(t, nullptr) || value != 1) return 4;
    if (patch_test_calls < 2) return 5;  // clone3
    upcall::patch::patch_process(Phase::thread_creation);
    Totals again = upcall::patch::totals();
    if (again.patched != first.patched || again.stub_bytes != first.stub_bytes) return 6;
    upcall::patch::patch_process(Phase::all);
    Totals all = upcall::patch::totals();
    if (all.deferred != 0 || all.patched <= first.patched || all.unpatched != 0) return 7;
    patch_test_calls = 0;
    getpid();
    if (patch_test_calls != 1) return 8;
    upcall::patch::patch_process(Phase::all);
    if (upcall::patch::totals().patched != all.patched ||
        upcall::patch::totals().stub_bytes != all.stub_bytes)
      return 9;
    return workload();
  });
  EXPECT_EQ(0, failed);
}

// Both phases together reach what the second alone reaches.
TEST(PatchProcess, PhasesAddUp) {
  unsigned long patched[2] = {};
  for (int two_steps = 0; two_steps < 2; ++two_steps) {
    auto* shared = static_cast<unsigned long*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(MAP_FAILED, static_cast<void*>(shared));
    ASSERT_EQ(0, in_child([&] {
                configure();
                if (two_steps) upcall::patch::patch_process(Phase::thread_creation);
                upcall::patch::patch_process(Phase::all);
                *shared = upcall::patch::totals().patched;
                return 0;
              }));
    patched[two_steps] = *shared;
    munmap(shared, 4096);
  }
  EXPECT_GT(patched[0], 400u);
  EXPECT_EQ(patched[0], patched[1]);
}

// A library whose code has byte pairs that look like system calls, and none that is one: not a byte of it
// may change.
int stays_untouched(const char* library, unsigned long at_least) {
  return in_child([=] {
    if (!dlopen(library, RTLD_NOW)) return 77;
    configure();
    uintptr_t start = 0;
    std::vector<uint8_t> before = code_of(library, &start);
    upcall::patch::patch_process(Phase::all);
    std::vector<uint8_t> after = code_of(library);
    if (before.empty() || before != after) return 1;
    unsigned long pairs = 0;
    for (size_t i = 0; i + 1 < before.size(); ++i) pairs += before[i] == 0x0f && before[i + 1] == 0x05;
    return pairs >= at_least ? 0 : 2;
  });
}

TEST(PatchProcess, FalseCandidatesOfLibcryptoStay) {
  int result = stays_untouched("libcrypto.so.3", 5);
  if (result == 77) GTEST_SKIP() << "libcrypto.so.3 is not installed";
  EXPECT_EQ(0, result);
}

TEST(PatchProcess, FalseCandidatesOfLlvmStay) {
  int result = stays_untouched("libLLVM-14.so.1", 200);
  if (result == 77) GTEST_SKIP() << "libLLVM-14.so.1 (package libllvm14) is not installed";
  EXPECT_EQ(0, result);
}

TEST(PatchProcess, LibgompIsRedirectedCompletely) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer does not understand libgomp's own synchronisation";
#endif
  int result = in_child([] {
    void* gomp = dlopen("libgomp.so.1", RTLD_NOW);
    if (!gomp) return 77;
    configure();
    upcall::patch::patch_process(Phase::all);
    if (upcall::patch::totals().unpatched != 0) return 1;
    auto parallel =
        reinterpret_cast<void (*)(void (*)(void*), void*, unsigned, unsigned)>(dlsym(gomp, "GOMP_parallel"));
    if (!parallel) return 2;
    static long sum;
    unsigned long before = patch_test_calls;
    for (int i = 0; i < 50; ++i)
      parallel([](void*) { __atomic_add_fetch(&sum, 1, __ATOMIC_RELAXED); }, nullptr, 4, 0);
    if (sum != 200) return 3;
    return patch_test_calls > before ? 0 : 4;
  });
  if (result == 77) GTEST_SKIP() << "libgomp.so.1 is not installed";
  EXPECT_EQ(0, result);
}

TEST(PatchProcess, OwnObjectStays) {
  int failed = in_child([] {
    configure();
    Maps maps;
    maps.read();
    const Mapping* own = maps.find(reinterpret_cast<uintptr_t>(&upcall::patch::patch_process));
    if (!own) return 1;
    const auto* code = reinterpret_cast<const uint8_t*>(own->start);
    std::vector<uint8_t> before(code, code + (own->end - own->start));
    upcall::patch::patch_process(Phase::all);
    return std::memcmp(before.data(), code, before.size()) == 0 ? 0 : 2;
  });
  EXPECT_EQ(0, failed);
}

// The maps are read once for all objects: what the engine has mapped since may lie at any of the first places.
TEST(PatchProcess, RoomIsFoundWhereTheFirstPlacesAreTaken) {
  Maps maps;
  ASSERT_TRUE(maps.read());
  const Mapping* code = maps.find(reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, "getpid")));
  ASSERT_NE(code, nullptr);
  constexpr size_t bytes = 10 * 4096;
  std::vector<uintptr_t> places;
  for (unsigned attempt = 0; attempt < 16; ++attempt) {
    uintptr_t at = maps.room_near(code->start, code->end, bytes, attempt);
    ASSERT_NE(at, 0u) << "attempt " << attempt;
    EXPECT_EQ(at % 4096, 0u);
    for (const Mapping& m : maps.all()) EXPECT_TRUE(at + bytes <= m.start || m.end <= at);
    uintptr_t farthest = at < code->start ? code->end - at : at + bytes - code->start;
    EXPECT_LT(farthest, 1ul << 31);
    for (uintptr_t other : places) EXPECT_GE(at < other ? other - at : at - other, bytes);
    places.push_back(at);
  }
  maps.release();
}

}  // namespace
