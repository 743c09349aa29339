// The engine on an object written for it: every kind of placement, patched and then run.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/log.h"
#include "linux/patch/maps.h"
#include "linux/patch/patch.h"
#include "patch_child.h"

namespace {

using upcall::patch::Mapping;
using upcall::patch::Maps;
using upcall::patch::Phase;
using upcall::patch::Totals;

// In the order of sample_sites.
enum Place {
  kBefore,
  kLoop,
  kRipBefore,
  kRipImmediate,
  kRipAfter,
  kBranch,
  kCase2,
  kInner,
  kOuter,
  kRestorer,
  kHop,
  kNoPadding,
  kHot,
  kRead
};

bool all_but_read(long nr) { return nr != SYS_read; }

// The sample, loaded into this (child) process.
class Sample {
 public:
  explicit Sample(const char* path = PATCH_SAMPLE) : handle_(dlopen(path, RTLD_NOW)) {
    if (!handle_) std::fprintf(stderr, "%s\n", dlerror());
    upcall::patch::configure({reinterpret_cast<void*>(&patch_test_entry), all_but_read});
    patch_test_set_gs(1);
    if (std::getenv("UPCALL_LOG")) upcall::g_log_topics = 1;
    Maps maps;
    maps.read();
    if (const Mapping* m = maps.find(reinterpret_cast<uintptr_t>(dlsym(handle_, "sample_before"))))
      mapping_ = *m;
    maps.release();
  }
  bool loaded() const { return handle_ && mapping_.start; }
  const Mapping& mapping() const { return mapping_; }

  void patch(bool with_file = true) {
    int fd = with_file ? open(PATCH_SAMPLE, O_RDONLY | O_CLOEXEC) : -1;
    upcall::patch::patch_mapping(mapping_.start, mapping_.end, fd, mapping_.offset);
    if (fd >= 0) ::close(fd);
  }

  void close() { dlclose(handle_); }

  template <typename... Args>
  long call(const char* name, Args... args) const {
    auto f = reinterpret_cast<long (*)(...)>(dlsym(handle_, name));
    return f ? f(static_cast<long>(args)...) : -12345;
  }
  // How many calls went to the entry while `body` ran.
  template <typename Body>
  static long redirected(Body body) {
    unsigned long before = patch_test_calls;
    body();
    return static_cast<long>(patch_test_calls - before);
  }
  unsigned char* at(Place place) const {
    auto* table = static_cast<char*>(dlsym(handle_, "sample_sites"));
    int offset;
    std::memcpy(&offset, table + 4 * place, 4);
    return reinterpret_cast<unsigned char*>(table + offset);
  }
  template <typename T>
  T* symbol(const char* name) const {
    return static_cast<T*>(dlsym(handle_, name));
  }

 private:
  void* handle_;
  Mapping mapping_{};
};

constexpr unsigned char kLongJump = 0xe9, kShortJump = 0xeb;
constexpr unsigned char kConstant[8] = {0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0x90};
constexpr unsigned char kRestorerBytes[9] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};

// Runs `body(sample)` in a child with the sample patched; the failures it counts are the child's status.
#define CHECK_THAT(condition)                                                        \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                                    \
    }                                                                                \
  } while (0)

template <typename Body>
int with_sample(Body body) {
  return in_child([&] {
    Sample sample;
    if (!sample.loaded()) return 100;
    sample.patch();
    return body(sample);
  });
}

// What every function returns; true before and after patching.
int check_results(const Sample& s) {
  int failures = 0;
  long pid = syscall(SYS_getpid), parent = syscall(SYS_getppid), uid = syscall(SYS_getuid);
  CHECK_THAT(s.call("sample_before") == pid);
  CHECK_THAT(s.call("sample_loop", 3) == 39);
  CHECK_THAT(s.call("sample_rip_before", SYS_getpgid) == syscall(SYS_getpgid, 0));
  *s.symbol<int>("sample_cell") = 0;
  CHECK_THAT(s.call("sample_rip_immediate", SYS_getpgid) == syscall(SYS_getpgid, 0));
  CHECK_THAT(*s.symbol<int>("sample_cell") == 0x12345678);
  CHECK_THAT(s.call("sample_rip_after", 0) == pid + 1000);
  CHECK_THAT(s.call("sample_rip_after", 1) == parent + 1000);
  CHECK_THAT(s.call("sample_branch", SYS_getpid) == pid);
  CHECK_THAT(s.call("sample_branch", -5) == -1);
  CHECK_THAT((s.call("sample_flags") & 0x401) == 0x401);
  CHECK_THAT(s.call("sample_registers") == 1);
  CHECK_THAT(s.call("sample_switch", 0) == pid);
  CHECK_THAT(s.call("sample_switch", 1) == uid);
  CHECK_THAT(s.call("sample_switch", 2) == parent);
  CHECK_THAT(s.call("sample_immediate") == 0x05140f);
  CHECK_THAT(s.call("sample_constant") == static_cast<long>(0x90050f00000027b8));
  CHECK_THAT(s.call("sample_hop", 0) == 39);
  CHECK_THAT(s.call("sample_hop", 3) == pid);
  CHECK_THAT(s.call("sample_no_padding", 0) == 39);
  CHECK_THAT(s.call("sample_no_padding", 3) == pid);
  CHECK_THAT(s.call("sample_neighbour") == 16);
  CHECK_THAT(s.call("sample_split") == pid);
  CHECK_THAT(s.call("sample_hot", 0) == pid);
  CHECK_THAT(s.call("sample_hot", 1) == uid);
  CHECK_THAT(s.call("sample_caller") == pid);
  CHECK_THAT(s.call("sample_cold_call", 0) == 0);
  CHECK_THAT(s.call("sample_cold_call", 1) == pid);
  CHECK_THAT(s.call("sample_two") == pid + parent);
  CHECK_THAT(s.call("sample_numbers", 1) == pid);
  CHECK_THAT(s.call("sample_numbers", 0) == uid);
  CHECK_THAT(s.call("sample_read", -1, 0, 0) == -9);
  return failures;
}

int check_redirected(const Sample& s) {
  int failures = 0;
  struct {
    const char* name;
    long argument;
    long calls;
  } cases[] = {
      {"sample_before", 0, 1},
      {"sample_loop", 5, 5},
      {"sample_rip_before", SYS_getpgid, 1},
      {"sample_rip_immediate", SYS_getpgid, 1},
      {"sample_rip_after", 0, 1},
      {"sample_rip_after", 1, 1},
      {"sample_branch", SYS_getpid, 1},
      {"sample_branch", -1, 0},
      {"sample_flags", 0, 1},
      {"sample_registers", 0, 1},
      {"sample_switch", 0, 1},
      {"sample_switch", 1, 1},
      {"sample_switch", 2, 1},
      {"sample_hop", 4, 4},
      {"sample_hop", 0, 0},
      {"sample_no_padding", 4, 4},
      {"sample_split", 0, 1},
      {"sample_hot", 0, 1},
      {"sample_hot", 1, 1},
      {"sample_two", 0, 2},
      {"sample_caller", 0, 1},
      {"sample_cold_call", 0, 0},
      {"sample_cold_call", 1, 1},
      {"sample_numbers", 0, 1},
      {"sample_numbers", 1, 1},
      {"sample_read", -1, 0},
  };
  for (auto& c : cases) {
    long calls = Sample::redirected([&] { s.call(c.name, c.argument, 0, 0); });
    if (calls != c.calls) {
      std::fprintf(stderr, "%s(%ld): %ld calls redirected, not %ld\n", c.name, c.argument, calls, c.calls);
      ++failures;
    }
  }
  return failures;
}

TEST(PatchSample, ResultsAreRightUnpatched) {
  EXPECT_EQ(0, in_child([] {
              Sample sample;
              return sample.loaded() ? check_results(sample) : 100;
            }));
}

TEST(PatchSample, ResultsAreRightPatched) { EXPECT_EQ(0, with_sample(check_results)); }

TEST(PatchSample, EverySiteIsRedirected) { EXPECT_EQ(0, with_sample(check_redirected)); }

TEST(PatchSample, WithGsZeroTheStubsCallThemselves) {
  int failed = with_sample([](const Sample& s) {
    patch_test_set_gs(0);
    int failures = 0;
    CHECK_THAT(Sample::redirected([&] { failures += check_results(s); }) == 0);
    return failures;
  });
  EXPECT_EQ(0, failed);
}

TEST(PatchSample, PlacementsAreTheExpectedOnes) {
  int failed = with_sample([](const Sample& s) {
    int failures = 0;
    for (Place p : {kBefore, kLoop, kRipBefore, kRipImmediate, kRipAfter, kBranch, kCase2}) {
      if (*s.at(p) == kLongJump) continue;
      std::fprintf(stderr, "place %d begins with %02x\n", p, *s.at(p));
      ++failures;
    }
    for (Place p : {kHop, kNoPadding}) CHECK_THAT(*s.at(p) == kShortJump);
    return failures;
  });
  EXPECT_EQ(0, failed);
}

TEST(PatchSample, WhatIsNoCodeOrARestorerStays) {
  int failed = with_sample([](const Sample& s) {
    int failures = 0;
    CHECK_THAT(std::memcmp(s.at(kInner), kConstant, 8) == 0);
    CHECK_THAT(std::memcmp(s.at(kOuter), kConstant, 8) == 0);
    CHECK_THAT(std::memcmp(s.at(kRestorer), kRestorerBytes, 9) == 0);
    CHECK_THAT(s.at(kRead)[2] == 0x0f && s.at(kRead)[3] == 0x05);
    Totals t = upcall::patch::totals();
    CHECK_THAT(t.objects == 1);
    CHECK_THAT(t.not_code == 4);    // two constants, two immediates
    CHECK_THAT(t.left_plain == 2);  // the restorer, read
    CHECK_THAT(t.unpatched == 0 && t.critical_unpatched == 0 && t.deferred == 0);
    CHECK_THAT(t.patched + t.not_code + t.left_plain == t.candidates);
    return failures;
  });
  EXPECT_EQ(0, failed);
}

TEST(PatchSample, PagesGetTheirProtectionBackAndStubsAreNotWritable) {
  int failed = with_sample([](const Sample& s) {
    int failures = 0, stubs = 0;
    Maps maps;
    maps.read();
    for (const Mapping& m : maps.all()) {
      if (upcall::patch::covers(m.start)) {
        ++stubs;
        CHECK_THAT(m.prot == (PROT_READ | PROT_EXEC));
        CHECK_THAT(upcall::patch::covers(m.end - 1) && !upcall::patch::covers(m.end) &&
                   !upcall::patch::covers(m.start - 1));
      }
      if (m.start == s.mapping().start)
        CHECK_THAT(m.prot == (PROT_READ | PROT_EXEC) && m.end == s.mapping().end);
    }
    CHECK_THAT(stubs == 1);
    return failures;
  });
  EXPECT_EQ(0, failed);
}

TEST(PatchSample, WithoutItsFileTheMappedSegmentsSuffice) {
  char path[] = "/tmp/patch_sample_XXXXXX";
  int copy = mkstemp(path);
  ASSERT_GE(copy, 0);
  std::string command = std::string("cp ") + PATCH_SAMPLE + " " + path;
  ASSERT_EQ(0, std::system(command.c_str()));
  close(copy);
  int failed = in_child([&] {
    Sample sample(path);
    unlink(path);
    if (!sample.loaded()) return 100;
    sample.patch(false);
    // .text.unlikely and all else is one executable segment now, constants between functions included.
    int failures = check_results(sample) + check_redirected(sample);
    CHECK_THAT(std::memcmp(sample.at(kInner), kConstant, 8) == 0);
    CHECK_THAT(std::memcmp(sample.at(kOuter), kConstant, 8) == 0);
    return failures;
  });
  unlink(path);
  EXPECT_EQ(0, failed);
}

TEST(PatchSample, ByPathAsWellAsByDescriptor) {
  int failed = in_child([] {
    Sample sample;
    if (!sample.loaded()) return 100;
    sample.patch(false);
    return check_results(sample) + check_redirected(sample);
  });
  EXPECT_EQ(0, failed);
}

// The wrong file at the right path: nothing may be believed.
TEST(PatchSample, AnotherFileAtItsPathIsNotBelieved) {
  char path[] = "/tmp/patch_sample_XXXXXX";
  int copy = mkstemp(path);
  ASSERT_GE(copy, 0);
  close(copy);
  ASSERT_EQ(0, std::system((std::string("cp ") + PATCH_SAMPLE + " " + path).c_str()));
  int failed = in_child([&] {
    Sample sample(path);
    unlink(path);
    if (!sample.loaded() || std::system((std::string("cp /bin/true ") + path).c_str()) != 0) return 100;
    sample.patch(false);
    return check_results(sample) + check_redirected(sample);
  });
  unlink(path);
  EXPECT_EQ(0, failed);
}

TEST(PatchSample, UnmappingTakesTheStubsAway) {
  int failed = with_sample([](const Sample& s) {
    int failures = 0;
    CHECK_THAT(upcall::patch::totals().patched > 0);
    uintptr_t stub = reinterpret_cast<uintptr_t>(s.at(kBefore));
    int displacement;
    std::memcpy(&displacement, s.at(kBefore) + 1, 4);
    stub += 5 + static_cast<uintptr_t>(static_cast<long>(displacement));
    CHECK_THAT(upcall::patch::covers(stub));
    upcall::patch::forget_mapping(s.mapping().start, s.mapping().end);
    CHECK_THAT(!upcall::patch::covers(stub));
    CHECK_THAT(upcall::patch::totals().objects == 0 && upcall::patch::totals().patched == 0);
    Maps maps;
    maps.read();
    // Whoever maps memory next, reading this list included, may have been given that place.
    const Mapping* there = maps.find(stub);
    CHECK_THAT(!there || !(there->prot & PROT_EXEC));
    return failures;
  });
  EXPECT_EQ(0, failed);
}

// The dynamic linker takes protections away and gives them back, and unmaps holes beside the code.
TEST(PatchSample, StubsOutliveChangesOfProtectionAndHoles) {
  int failed = with_sample([](const Sample& s) {
    unsigned long before = upcall::patch::totals().patched;
    uintptr_t start = s.mapping().start, end = s.mapping().end;
    upcall::patch::patch_mapping(start, end, -1, s.mapping().offset);
    upcall::patch::forget_mapping(end, end + 4096);
    upcall::patch::forget_mapping(start - 4096, start);
    int failures = check_redirected(s);
    CHECK_THAT(upcall::patch::totals().patched == before && upcall::patch::totals().objects == 1);
    return failures;
  });
  EXPECT_EQ(0, failed);
}

TEST(PatchSample, LoadedAgainAndAgain) {
  int failed = in_child([] {
    int failures = 0;
    for (int i = 0; i < 20 && !failures; ++i) {
      void* handle = dlopen(PATCH_SAMPLE, RTLD_NOW);
      Sample sample;
      sample.patch();
      failures += check_redirected(sample);
      upcall::patch::forget_mapping(sample.mapping().start, sample.mapping().end);
      dlclose(handle);
      sample.close();
      CHECK_THAT(dlopen(PATCH_SAMPLE, RTLD_NOW | RTLD_NOLOAD) == nullptr);
    }
    CHECK_THAT(upcall::patch::totals().objects == 0);
    return failures;
  });
  EXPECT_EQ(0, failed);
}

// Signal handlers and unwinders are to see the program's own addresses.
TEST(PatchSample, StubAddressesTranslateBack) {
  int failed = with_sample([](const Sample& s) {
    int failures = 0;
    auto stub_of = [&](Place p) {
      int displacement;
      std::memcpy(&displacement, s.at(p) + 1, 4);
      return reinterpret_cast<uintptr_t>(s.at(p)) + 5 +
             static_cast<uintptr_t>(static_cast<long>(displacement));
    };
    uintptr_t site = reinterpret_cast<uintptr_t>(s.at(kBefore)) + 5, stub = stub_of(kBefore);
    using upcall::patch::kStubPlainOffset;
    using upcall::patch::kStubRestartOffset;
    using upcall::patch::program_pc;
    CHECK_THAT(program_pc(stub) == site - 5);                           // the mov is still to come
    CHECK_THAT(program_pc(stub + 5) == site);                           // restart
    CHECK_THAT(program_pc(stub + 5 + kStubPlainOffset) == site);        // the plain syscall
    CHECK_THAT(program_pc(stub + 5 + kStubRestartOffset) == site + 2);  // done
    site = reinterpret_cast<uintptr_t>(s.at(kLoop));
    stub = stub_of(kLoop);
    CHECK_THAT(program_pc(stub) == site);
    CHECK_THAT(program_pc(stub + kStubRestartOffset) == site + 2);
    CHECK_THAT(program_pc(stub + kStubRestartOffset + 5) == site + 7);  // the moved mov is done
    CHECK_THAT(program_pc(site) == site);
    return failures;
  });
  EXPECT_EQ(0, failed);
}

// Stubs, and a number put off, when only what makes threads is wanted.
TEST(PatchSample, UnwantedAndDeferredNumbersStay) {
  int failed = in_child([] {
    Sample sample;
    if (!sample.loaded()) return 100;
    upcall::patch::configure(
        {reinterpret_cast<void*>(&patch_test_entry), [](long nr) { return nr == SYS_getuid; }});
    upcall::patch::patch_process(Phase::all);
    int failures = check_results(sample);
    long calls = Sample::redirected([&] { sample.call("sample_before"); });
    CHECK_THAT(calls == 0);
    calls = Sample::redirected([&] { sample.call("sample_switch", 0); });
    CHECK_THAT(calls == 0);
    calls = Sample::redirected([&] { sample.call("sample_branch", SYS_getpid); });
    CHECK_THAT(calls == 1);  // not a constant
    calls = Sample::redirected([&] { sample.call("sample_numbers", 1); });
    CHECK_THAT(calls == 0);  // a constant, some way off
    calls = Sample::redirected([&] { sample.call("sample_numbers", 0); });
    CHECK_THAT(calls == 1);  // two ways lead there
    return failures;
  });
  EXPECT_EQ(0, failed);
}

TEST(PatchSample, NotAnElfFileIsLeftAlone) {
  int failed = in_child([] {
    char path[] = "/tmp/patch_flat_XXXXXX";
    int fd = mkstemp(path);
    unsigned char page[4096] = {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3};
    if (fd < 0 || write(fd, page, sizeof page) != sizeof page) return 100;
    unlink(path);
    void* code = mmap(nullptr, sizeof page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    if (code == MAP_FAILED) return 100;
    upcall::patch::configure({reinterpret_cast<void*>(&patch_test_entry), all_but_read});
    patch_test_set_gs(1);
    uintptr_t start = reinterpret_cast<uintptr_t>(code);
    upcall::patch::patch_mapping(start, start + sizeof page, fd, 0);
    int failures = 0;
    CHECK_THAT(std::memcmp(code, page, sizeof page) == 0);
    CHECK_THAT(upcall::patch::totals().patched == 0);
    return failures;
  });
  EXPECT_EQ(0, failed);
}

}  // namespace
