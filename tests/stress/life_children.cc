// Processes of the life storm: forked from a thread or spawned beside all the others, with threads of their own, ended
// in every way. Whoever made one has decided how it ends, and sees that it did.
#include "life.h"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/time.h>

extern char** environ;

namespace upcall::test::life {

namespace {

enum class End { kExit, kThreadExits, kKilled, kTerminated, kExecs, kThreadExecs, kCount };

struct Plan {
  End end;
  int code, threads;
  uint64_t seed;
};

pthread_mutex_t child_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t child_changed = PTHREAD_COND_INITIALIZER;
Pair child_pair;
int child_turns = 0;

void child_thread(uint64_t seed) {
  Random random(seed);
  for (int i = 0; i < 5; ++i) {
    CHECK_EQ(pthread_mutex_lock(&child_mutex), 0);
    child_pair.step([&random] {
      if (random.one_in(3)) sched_yield();
    });
    ++child_turns;
    CHECK_EQ(pthread_cond_broadcast(&child_changed), 0);
    CHECK_EQ(pthread_mutex_unlock(&child_mutex), 0);
    if (random.one_in(3)) nap(random.below(100'000));
  }
}

// The child has a handler for it, and nobody but its own main thread sends it one.
void signal_threads(const std::vector<pthread_t>& threads) {
  const int64_t before = storm::counts.signals_handled;
  for (pthread_t thread : threads) CHECK_EQ(pthread_kill(thread, storm::kSignal), 0);
  const auto sent = static_cast<int64_t>(threads.size());
  for (int i = 0; storm::counts.signals_handled < before + sent && i < 10'000; ++i) nap(kMs);
  CHECK_EQ(storm::counts.signals_handled, before + sent);
}

void work_with_threads(const Plan& plan, bool handlers) {
  std::atomic<bool> done{false};
  std::vector<pthread_t> threads;
  for (int i = 0; i < plan.threads; ++i) {
    const uint64_t seed = plan.seed + static_cast<uint64_t>(i);
    threads.push_back(start([seed, &done] {
      child_thread(seed);
      while (!done) nap(kMs);
    }));
  }
  CHECK_EQ(pthread_mutex_lock(&child_mutex), 0);
  while (child_turns < 5 * plan.threads) CHECK_EQ(pthread_cond_wait(&child_changed, &child_mutex), 0);
  CHECK_EQ(pthread_mutex_unlock(&child_mutex), 0);
  CHECK_EQ(child_pair.a, child_pair.b);
  CHECK_EQ(child_pair.a, 5 * plan.threads);
  if (handlers) signal_threads(threads);
  done = true;
  join_all(threads);
}

// What a spawned program is told: how it should find its mask, what is pending, and how to end.
struct Words {
  char text[5][32];
  char* list[8];

  Words(const char* program, uint64_t mask, uint64_t pending, const Plan& plan) {
    snprintf(text[0], sizeof text[0], "%d", plan.code);
    snprintf(text[1], sizeof text[1], "%llx", static_cast<unsigned long long>(mask));
    snprintf(text[2], sizeof text[2], "%llx", static_cast<unsigned long long>(pending));
    snprintf(text[3], sizeof text[3], "%d", plan.threads);
    snprintf(text[4], sizeof text[4], "%llu", static_cast<unsigned long long>(plan.seed));
    static char mark[] = "--child";
    list[0] = const_cast<char*>(program);
    list[1] = mark;
    for (int i = 0; i < 5; ++i) list[i + 2] = text[i];
    list[7] = nullptr;
  }
};

constexpr char kSelf[] = "/proc/self/exe";

[[noreturn]] void become_another(const Plan& plan) {
  // One pending and blocked: it stays so.
  const sigset_t set = signal_set({SIGUSR1});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  CHECK_EQ(raise(SIGUSR1), 0);
  const Words words(kSelf, mask_now(), uint64_t{1} << (SIGUSR1 - 1), plan);
  execv(kSelf, words.list);
  FAIL("execv: errno %d", errno);
}

[[noreturn]] void end_child(const Plan& plan) {
  switch (plan.end) {
    case End::kThreadExits:
      start([&plan] { _exit(plan.code); });
      for (;;) pause();
    case End::kKilled:
      kill(getpid(), SIGKILL);
      break;
    case End::kTerminated:
      kill(getpid(), SIGTERM);
      FAIL("alive after SIGTERM");
    case End::kExecs:
      become_another(plan);
    case End::kThreadExecs:
      start([&plan] { become_another(plan); });
      for (;;) pause();
    default:
      break;
  }
  _exit(plan.code);
}

[[noreturn]] void be_forked(const Plan& plan, pid_t parent, uint64_t parents_mask) {
  const int64_t handled = storm::counts.signals_handled + life_counts.ticks + life_counts.plain;
  own_slot = nullptr;  // the table is the parent's
  CHECK(getpid() != parent);
  CHECK_EQ(getppid(), parent);
  CHECK_EQ(gettid(), getpid());
  CHECK_EQ(mask_now(), parents_mask);
  sigset_t pending;
  CHECK_EQ(sigpending(&pending), 0);
  for (int signal = 1; signal < SIGRTMAX; ++signal) CHECK_EQ(sigismember(&pending, signal) == 1, false);
  for (int which : {ITIMER_REAL, ITIMER_PROF}) {
    itimerval value;
    CHECK_EQ(getitimer(static_cast<__itimer_which>(which), &value), 0);
    CHECK_EQ(value.it_value.tv_sec * 1'000'000 + value.it_value.tv_usec, 0);
  }
  const sigset_t open = signal_set({storm::kSignal, SIGTERM});
  CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &open, nullptr), 0);
  // Nobody sends it anything, whatever its parent gets.
  CHECK_EQ(storm::counts.signals_handled + life_counts.ticks + life_counts.plain, handled);
  own = nullptr;  // the threads to come are nobody's workers
  if (plan.threads > 0) work_with_threads(plan, true);
  end_child(plan);
}

Plan some_plan(Random& random) {
  Plan plan;
  plan.end = random.one_in(2) ? End::kExit : static_cast<End>(random.below(static_cast<int>(End::kCount)));
  plan.code = random.below(126);
  plan.threads = random.below(4);
  // A killed process's sentinel may starve with what its parent's wait has to take apart (README, "Limits"): that takes
  // seconds, and is killer.cc's subject.
  if (plan.end == End::kKilled) plan.threads = 0;
  plan.seed = random.next() >> 1;
  return plan;
}

void check_end(const Plan& plan, int status) {
  const int signal = plan.end == End::kKilled ? SIGKILL : plan.end == End::kTerminated ? SIGTERM : 0;
  if (signal != 0 ? WIFSIGNALED(status) && WTERMSIG(status) == signal
                  : WIFEXITED(status) && WEXITSTATUS(status) == plan.code)
    return;
  FAIL("child that was to end by way %d, code %d, with %d threads, seed %llu: wait status 0x%x",
       static_cast<int>(plan.end), plan.code, plan.threads, static_cast<unsigned long long>(plan.seed),
       status);
}

void see_end(pid_t child, const Plan& plan, Random& random) {
  const Doing doing(Op::kChild, static_cast<int>(plan.end));
  if (random.one_in(3)) {
    int status = 0;
    pid_t got;
    while ((got = waitpid(child, &status, WNOHANG)) == 0) nap(kMs);
    CHECK_EQ(got, child);
    check_end(plan, status);
  } else {
    check_end(plan, wait_status(child));
  }
}

void fork_one(Random& random) {
  const Plan plan = some_plan(random);
  ++life_counts.forks;
  pid_t child;
  {
    const Doing doing(Op::kForking, static_cast<int>(plan.end));
    const uint64_t mask = own_life().mask;
    const pid_t parent = getpid();
    child = fork();
    if (child == 0) be_forked(plan, parent, mask);
    CHECK(child > 0);
  }
  see_end(child, plan, random);
}

void vfork_one(Random& random) {
  Plan plan = some_plan(random);
  plan.end = End::kExit;
  const Words words(kSelf, own_life().mask, 0, plan);
  ++life_counts.spawns;
  pid_t child;
  {
    const Doing doing(Op::kSpawning);
    child = vfork();
    if (child == 0) {
      execv(kSelf, words.list);
      _exit(127);
    }
    CHECK(child > 0);
  }
  see_end(child, plan, random);
}

void spawn_one(Random& random) {
  Plan plan = some_plan(random);
  plan.end = End::kExit;
  posix_spawnattr_t attributes;
  CHECK_EQ(posix_spawnattr_init(&attributes), 0);
  uint64_t mask = own_life().mask;
  if (random.one_in(2)) {
    const sigset_t set = signal_set({SIGUSR2, kQueued});
    mask = uint64_t{1} << (SIGUSR2 - 1) | uint64_t{1} << (kQueued - 1);
    CHECK_EQ(posix_spawnattr_setsigmask(&attributes, &set), 0);
    CHECK_EQ(posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK), 0);
  }
  const Words words(kSelf, mask, 0, plan);
  ++life_counts.spawns;
  pid_t child = -1;
  {
    const Doing doing(Op::kSpawning);
    CHECK_EQ(posix_spawn(&child, kSelf, nullptr, &attributes, words.list, environ), 0);
  }
  CHECK_EQ(posix_spawnattr_destroy(&attributes), 0);
  see_end(child, plan, random);
}

}  // namespace

void be_spawned(int count, char** arguments) {
  if (count != 7 || strcmp(arguments[1], "--child") != 0) return;
  const uint64_t mask = strtoull(arguments[3], nullptr, 16), pending = strtoull(arguments[4], nullptr, 16);
  const Plan plan = {End::kExit, atoi(arguments[2]), atoi(arguments[5]), strtoull(arguments[6], nullptr, 10)};
  CHECK_EQ(mask_now(), mask);
  sigset_t set;
  CHECK_EQ(sigpending(&set), 0);
  for (int signal = 1; signal < SIGRTMAX; ++signal)
    CHECK_EQ(sigismember(&set, signal) == 1, (pending >> (signal - 1) & 1) != 0);
  const sigset_t handled = handled_signals();
  for (int signal = 1; signal < SIGRTMAX; ++signal) {
    struct sigaction action;
    if (sigismember(&handled, signal) != 1) continue;
    CHECK_EQ(sigaction(signal, nullptr, &action), 0);
    CHECK(action.sa_handler == SIG_DFL);
  }
  if (plan.threads > 0) work_with_threads(plan, false);
  _exit(plan.code);
}

void use_process(Random& random) {
  switch (random.below(6)) {
    case 0:
      vfork_one(random);
      break;
    case 1:
      spawn_one(random);
      break;
    default:
      fork_one(random);
  }
}

}  // namespace upcall::test::life
