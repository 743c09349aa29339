// simulation [--seed N] [--seeds N] [--repeats N] [--expect-failure] [--quiet] [--trace] [--events N]
//            [--processors N] [--focus WHAT]
//
// Runs schedules with seeds from N on, each in a child process (the runtime's variables are then as they are when a
// program starts). With --expect-failure some schedule must fail: the runtime was compiled with a mistake in it.
// --focus: threads do one thing only, such as creating (program.cc has the names). With --repeats, as many schedules must be the same in another process.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "run.h"

namespace {

using namespace upcall::sim;  // NOLINT

struct Totals {
  uint64_t schedules = 0, failures = 0, steps = 0, owner_checks = 0, quiet_checks = 0, handovers = 0,
           detached = 0, surrendered = 0, preemptions = 0, reused = 0, steals = 0;
  void add(const Result& r) noexcept {
    ++schedules;
    steps += r.steps, owner_checks += r.owner_checks, quiet_checks += r.quiet_checks,
        handovers += r.handovers;
    detached += r.detached, surrendered += r.surrendered, preemptions += r.preemptions, reused += r.reused;
    steals += r.steals;
  }
};

// False: it failed, or the child died.
bool run(uint64_t seed, bool report) {
  *g_result = {};
  g_options.seed = seed;
  g_options.report = report;
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) {
    perror("fork");
    exit(2);
  }
  if (child == 0) {
    alarm(5);
    run_schedule();
  }
  int status;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  if (!g_result->failed) {
    g_result->failed = true;
    snprintf(g_result->message, sizeof g_result->message, "the schedule's process ended with status %#x",
             static_cast<unsigned>(status));
    if (report) printf("seed %lu: %s\n", static_cast<unsigned long>(seed), g_result->message);
  }
  return false;
}

// The hash of a schedule in another process, whose variables lie elsewhere.
bool same_elsewhere(uint64_t seed) {
  run(seed, false);
  uint64_t here = g_result->hash;
  char path[4096], command[4200], line[400];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n < 0) return false;
  path[n] = 0;
  snprintf(command, sizeof command, "'%s' --seed %lu", path, static_cast<unsigned long>(seed));
  FILE* f = popen(command, "r");
  if (!f) return false;
  unsigned long number = 0, there = 0;
  while (fgets(line, sizeof line, f))
    if (sscanf(line, "seed %lu: hash %lx", &number, &there) == 2) break;
  pclose(f);
  if (here && here == there) return true;
  printf("seed %lu: hash %016lx here, %016lx in another process\n", static_cast<unsigned long>(seed),
         static_cast<unsigned long>(here), there);
  return false;
}

void print(const char* name, uint64_t n) { printf("  %-14s %lu\n", name, static_cast<unsigned long>(n)); }

// False: something that was to be tried was not.
bool print_totals(const Totals& all, uint64_t first) {
  printf("%lu schedules, seeds from %lu\n", static_cast<unsigned long>(all.schedules),
         static_cast<unsigned long>(first));
  const struct {
    const char* name;
    uint64_t n;
  } figures[] = {{"steps", all.steps},
                 {"owner checks", all.owner_checks},
                 {"quiet checks", all.quiet_checks},
                 {"hand-overs", all.handovers},
                 {"detached", all.detached},
                 {"surrendered", all.surrendered},
                 {"preemptions", all.preemptions},
                 {"reused", all.reused},
                 {"steals", all.steals}};
  bool complete = true;
  for (auto& f : figures) {
    print(f.name, f.n);
    complete &= f.n != 0;
  }
  constexpr uint64_t enough = 1000;
  if (complete || all.schedules < enough) return true;
  printf("one of these has not happened at all: the schedules try too little\n");
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t first = 1, count = 1, repeats = 0;
  bool expect_failure = false, quiet = false;
  for (int i = 1; i < argc; ++i) {
    auto is = [&](const char* name) { return !strcmp(argv[i], name); };
    bool has_value = i + 1 < argc;
    if (is("--seed") && has_value)
      first = strtoull(argv[++i], nullptr, 0);
    else if (is("--seeds") && has_value)
      count = strtoull(argv[++i], nullptr, 0);
    else if (is("--repeats") && has_value)
      repeats = strtoull(argv[++i], nullptr, 0);
    else if (is("--processors") && has_value)
      g_options.processors = static_cast<uint32_t>(strtoul(argv[++i], nullptr, 0));
    else if (is("--focus") && has_value && doing_named(argv[i + 1]) >= 0)
      g_options.focus = doing_named(argv[++i]);
    else if (is("--events") && has_value)
      g_options.events = strtoull(argv[++i], nullptr, 0);
    else if (is("--expect-failure"))
      expect_failure = true;
    else if (is("--quiet"))
      quiet = true;
    else if (is("--trace"))
      g_options.trace = true;
    else {
      fprintf(stderr,
              "usage: %s [--seed N] [--seeds N] [--repeats N] [--expect-failure] [--quiet] [--trace] "
              "[--events N] [--processors N] [--focus WHAT]\n",
              argv[0]);
      return 2;
    }
  }
  g_result = static_cast<Result*>(
      mmap(nullptr, sizeof(Result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (g_result == MAP_FAILED) return 2;
  for (uint64_t seed = first; seed < first + repeats; ++seed)
    if (!same_elsewhere(seed)) return 1;
  if (repeats) {
    printf("%lu schedules repeated\n", static_cast<unsigned long>(repeats));
    return 0;
  }
  Totals all;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    bool good = run(seed, !expect_failure && !quiet);
    all.add(*g_result);
    if (count == 1)
      printf("seed %lu: hash %016lx, %lu steps\n", static_cast<unsigned long>(seed),
             static_cast<unsigned long>(g_result->hash), static_cast<unsigned long>(g_result->steps));
    if (good) continue;
    ++all.failures;
    if (expect_failure) {
      printf("found by seed %lu: %s\n", static_cast<unsigned long>(seed), g_result->message);
      return 0;
    }
    if (quiet) {
      printf("seed %lu: %s (%s)\n", static_cast<unsigned long>(seed), g_result->message, g_result->settings);
    } else {
      printf("repeat with the same options and --seed %lu [--trace], without --seeds\n",
             static_cast<unsigned long>(seed));
      return 1;
    }
  }
  if (expect_failure) {
    printf("the mistake was not found by %lu schedules\n", static_cast<unsigned long>(count));
    return 1;
  }
  bool complete = print_totals(all, first);
  if (!complete) return 1;
  if (all.failures) return 1;
  return 0;
}
