// Kills a busy program (SIGKILL) and stops and continues it (SIGSTOP, SIGCONT) at random moments, on plain kernel threads and
// on Upcall, and looks at what the system has of it:
//   killed     it is gone within a bound, its parent is told so, no process is left but the child that lives on by itself,
//              which has the program's CPUs and class; no file is left; also when it was stopped before
//   stopped    all its kernel threads are, and use no CPU time; continued, it ends with the right result
//
//   killer [--seed N] [--seconds S] [--upcall COMMAND]
//
// One program, which is its own victim: killer --victim REPORT LIFELINE WORK.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

void nap(int64_t ns) {
  const timespec t = {ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&t, nullptr);
}

constexpr int64_t kMs = 1'000'000;
// A kernel thread of class SCHED_IDLE needs the CPU to end, beside whatever else runs here.
constexpr int64_t kBound = 60'000 * kMs;

// --- the victim -----------------------------------------------------------------------------------------------

struct Report {
  int64_t kind;  // 1: from the child that lives on, 2: the result
  uint64_t result;
  cpu_set_t cpus;
  int policy, nice;
};

uint64_t compute(uint64_t seed, long steps) {
  uint64_t value = seed * 0x9E3779B97F4A7C15u + 1;
  for (long i = 0; i < steps; ++i) {
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
  }
  return value;
}

void live_on(int report, int lifeline) {
  Report r = {};
  r.kind = 1;
  sched_getaffinity(0, sizeof r.cpus, &r.cpus);
  r.policy = sched_getscheduler(0);
  r.nice = getpriority(PRIO_PROCESS, 0);
  if (write(report, &r, sizeof r) != sizeof r) _exit(1);
  char byte;
  while (read(lifeline, &byte, 1) < 0 && errno == EINTR) {
  }
  _exit(0);
}

int victim(int report, int lifeline, long work) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy, others;
  int fds[2];
  if (pipe(fds) != 0) return 2;
  others.emplace_back([&] {
    for (char byte = 0; !stop;) {
      if (write(fds[1], &byte, 1) != 1 || read(fds[0], &byte, 1) != 1) _exit(2);
    }
  });
  others.emplace_back([&] {
    while (!stop) nap(300'000);
  });
  others.emplace_back([&] {
    if (fork() == 0) live_on(report, lifeline);
    while (!stop) {
      const pid_t child = fork();
      if (child == 0) _exit(3);
      int status;
      while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      nap(2 * kMs);
    }
  });
  others.emplace_back([&] {
    while (!stop) std::thread([] { compute(1, 1000); }).join();
  });
  std::atomic<uint64_t> sum{0};
  const long endless = 1L << 62;
  for (uint64_t i = 0; i < 3; ++i)
    busy.emplace_back([&, i] {
      for (long n = work ? work : endless; n > 0; --n) sum += compute(i + static_cast<uint64_t>(n), 2000);
    });
  for (std::thread& t : busy) t.join();
  stop = true;
  for (std::thread& t : others) t.join();
  Report r = {};
  r.kind = 2;
  r.result = sum;
  return write(report, &r, sizeof r) == sizeof r ? 0 : 2;
}

uint64_t right_result(long work) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 3; ++i)
    for (long n = work; n > 0; --n) sum += compute(i + static_cast<uint64_t>(n), 2000);
  return sum;
}

// --- the killer -----------------------------------------------------------------------------------------------

struct Way {
  const char* name;
  std::vector<std::string> before;
};

struct Run {
  pid_t pid;
  int report, lifeline;
};

std::string g_self, g_folder, g_problem;
std::mt19937_64 g_random;
int64_t g_longest = 0;

bool problem(const std::string& text) {
  if (g_problem.empty()) g_problem = text;
  return false;
}

Run begin(const Way& way, long work) {
  int report[2], lifeline[2];
  if (pipe(report) != 0 || pipe(lifeline) != 0) abort();
  fcntl(report[0], F_SETFD, FD_CLOEXEC);
  fcntl(lifeline[1], F_SETFD, FD_CLOEXEC);
  std::vector<std::string> words = way.before;
  words.insert(words.end(), {g_self, "--victim", std::to_string(report[1]), std::to_string(lifeline[0]),
                             std::to_string(work)});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("TMPDIR", g_folder.c_str(), 1);
    if (chdir(g_folder.c_str()) == 0) execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(report[1]);
  close(lifeline[0]);
  return {pid, report[0], lifeline[1]};
}

// Waits for `pid` (-1: any child) for so long. 0: not in time; -1: there is none.
pid_t wait_bounded(pid_t pid, int* status, int flags) {
  const int64_t end = now_ns() + kBound;
  for (;;) {
    const pid_t got = waitpid(pid, status, flags | WNOHANG);
    if (got != 0 || now_ns() > end) return got;
    nap(200'000);
  }
}

// All that is left of a run: the child that lives on until its lifeline is cut, and one that was about to end.
bool clear_up(const Run& run) {
  close(run.lifeline);
  int status, left = 0;
  pid_t got;
  while ((got = wait_bounded(-1, &status, 0)) > 0) {
    ++left;
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 3))
      problem("a child of it ended with wait status " + std::to_string(status));
  }
  if (got == 0) problem("a process is left that does not end");
  if (left > 2) problem(std::to_string(left) + " processes were left");
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof cpus, &cpus);
  Report r;
  ssize_t n;
  while ((n = read(run.report, &r, sizeof r)) == static_cast<ssize_t>(sizeof r)) {
    if (r.kind != 1) continue;
    if (!CPU_EQUAL(&r.cpus, &cpus)) problem("the child that lives on has other CPUs");
    if (r.policy != sched_getscheduler(0) || r.nice != getpriority(PRIO_PROCESS, 0))
      problem("the child that lives on has another scheduling class");
  }
  if (n != 0) problem("half a report");
  close(run.report);
  return g_problem.empty();
}

bool kill_once(const Way& way) {
  const Run run = begin(way, 0);
  nap(static_cast<int64_t>(g_random() % (150 * kMs)));
  int status = 0;
  if (g_random() % 4 == 0) {
    kill(run.pid, SIGSTOP);
    if (g_random() % 2) nap(5 * kMs);
  }
  const int64_t killed = now_ns();
  kill(run.pid, SIGKILL);
  if (wait_bounded(run.pid, &status, 0) != run.pid) return problem("killed, and still there after a minute");
  if (now_ns() - killed > g_longest) g_longest = now_ns() - killed;
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
    problem("wait status " + std::to_string(status) + " after SIGKILL");
  return clear_up(run);
}

// Of all kernel threads: are they stopped (or just ending), and what CPU time have they used?
bool all_stopped(pid_t pid, uint64_t* ticks) {
  bool all = true;
  *ticks = 0;
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  DIR* tasks = opendir(folder.c_str());
  if (!tasks) return false;
  while (const dirent* entry = readdir(tasks)) {
    FILE* file =
        entry->d_name[0] == '.' ? nullptr : fopen((folder + "/" + entry->d_name + "/stat").c_str(), "re");
    if (!file) continue;
    char text[1024] = {};
    const size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    const char* after = n ? strrchr(text, ')') : nullptr;
    char state;
    unsigned long user, system;
    if (!after ||
        sscanf(after + 2, "%c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state, &user, &system) != 3)
      continue;
    // D: in vfork, or the like, which it leaves before it stops.
    if (state != 'T' && state != 'Z' && state != 'X') all = false;
    *ticks += user + system;
  }
  closedir(tasks);
  return all;
}

// True: it has ended, with `status`.
bool stop_once(const Run& run, int* status) {
  kill(run.pid, SIGSTOP);
  if (wait_bounded(run.pid, status, WUNTRACED) != run.pid) {
    problem("SIGSTOP, and neither stopped nor ended after a minute");
    return true;
  }
  if (!WIFSTOPPED(*status)) return true;
  if (WSTOPSIG(*status) != SIGSTOP) problem("stopped by another signal");
  uint64_t before, after;
  const int64_t end = now_ns() + kBound;
  while (!all_stopped(run.pid, &before) && now_ns() < end) nap(kMs / 2);
  if (!all_stopped(run.pid, &before)) problem("stopped, but a kernel thread is not");
  nap(static_cast<int64_t>(g_random() % (20 * kMs)));
  if (!all_stopped(run.pid, &after) || after > before) problem("it runs while it is stopped");
  kill(run.pid, SIGCONT);
  if (wait_bounded(run.pid, status, WCONTINUED) != run.pid) problem("SIGCONT is not reported");
  return !WIFCONTINUED(*status);
}

bool stop_often(const Way& way, long work, uint64_t expected) {
  const Run run = begin(way, work);
  int status = 0;
  bool ended = false;
  for (int i = 0; i < 25 && !ended && g_problem.empty(); ++i) {
    nap(static_cast<int64_t>(g_random() % (12 * kMs)));
    ended = stop_once(run, &status);
  }
  if (!ended && wait_bounded(run.pid, &status, 0) != run.pid) problem("continued, and does not end");
  if (!g_problem.empty()) kill(run.pid, SIGKILL);
  if (status != 0) problem("wait status " + std::to_string(status) + " instead of 0");
  Report r;
  bool right = false;
  for (int i = 0; i < 2 && !right && g_problem.empty(); ++i)
    right = read(run.report, &r, sizeof r) == static_cast<ssize_t>(sizeof r) && r.kind == 2 &&
            r.result == expected;
  if (!right) problem("no result, or a wrong one");
  return clear_up(run);
}

bool nothing_left() {
  DIR* folder = opendir(g_folder.c_str());
  int names = 0;
  while (const dirent* entry = readdir(folder)) names += entry->d_name[0] != '.';
  closedir(folder);
  return names == 0;
}

bool round_of(const Way& way, int number, uint64_t seed, long work, uint64_t expected) {
  g_random.seed(seed * 1'000'003 + static_cast<uint64_t>(number));
  g_problem.clear();
  const bool stops = number % 4 == 3;
  const bool good = (stops ? stop_often(way, work, expected) : kill_once(way)) && nothing_left();
  if (!good)
    printf("FAIL %s, round %d (%s), seed %lu: %s\n", way.name, number, stops ? "stops" : "kill", seed,
           g_problem.empty() ? "a file is left" : g_problem.c_str());
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && strcmp(argv[1], "--victim") == 0)
    return victim(atoi(argv[2]), atoi(argv[3]), atol(argv[4]));
  uint64_t seed = static_cast<uint64_t>(now_ns() / 1000 % 1'000'000);
  int64_t seconds = 20;
  std::string upcall;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--seed") == 0) seed = strtoull(argv[i + 1], nullptr, 10);
    if (strcmp(argv[i], "--seconds") == 0) seconds = atol(argv[i + 1]);
    if (strcmp(argv[i], "--upcall") == 0) {
      char* path = realpath(argv[i + 1], nullptr);  // runs begin in a folder of their own
      if (!path) return fprintf(stderr, "killer: no %s\n", argv[i + 1]), 2;
      upcall = path;
    }
  }
  char self[4096] = {}, folder[] = "/tmp/upcall-killer-XXXXXX";
  if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0 || !mkdtemp(folder)) return 2;
  g_self = self;
  g_folder = folder;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<Way> ways = {{"plain", {}}};
  if (!upcall.empty()) {
    ways.push_back({"1 processor, 10 ms", {upcall, "run", "--processors", "1", "--"}});
    ways.push_back(
        {"2 processors, 100 us", {upcall, "run", "--processors", "2", "--quantum", "100us", "--"}});
    ways.push_back({"--share threads", {upcall, "run", "--share", "threads", "--"}});
    ways.push_back({"--events bpf", {upcall, "run", "--events", "bpf", "--"}});
  }
  constexpr long kWork = 20'000;
  const uint64_t expected = right_result(kWork);
  printf("seed %lu\n", seed);
  const int64_t end = now_ns() + seconds * 1000 * kMs;
  int passed = 0, failed = 0;
  // At least one of each kind.
  for (int number = 0; number < 4 || now_ns() < end; ++number)
    for (const Way& way : ways) ++(round_of(way, number, seed, kWork, expected) ? passed : failed);
  rmdir(folder);
  printf("at most %ld ms from SIGKILL to the end\n%d passed, %d failed, 0 skipped\n",
         static_cast<long>(g_longest / kMs), passed, failed);
  return failed ? 1 : 0;
}
