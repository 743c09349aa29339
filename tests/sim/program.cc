// What the threads of the simulated program do: short things at random that all come to an end if nobody is forgotten.
#include "program.h"

#include <semaphore.h>
#include <time.h>

#include <cerrno>
#include <cstring>

#include "linux/linux.h"
#include "run.h"

extern "C" upcall::sched::Thread* upcall_yield_thread(upcall::sched::Thread* t) noexcept;

namespace upcall::sim {

namespace {

enum Doing {
  computing,
  yielding,
  calling,
  sleeping,
  faulting,
  locking,
  timed_locking,
  posting,
  creating,
  doings
};

const char* const doing_names[doings] = {"computing", "yielding",      "calling", "sleeping", "faulting",
                                         "locking",   "timed_locking", "posting", "creating"};

struct Plan {
  int workers, things, rounds, mutexes;
  uint64_t longest;  // of computing, calls, faults and sleeps, ns
  uint32_t weight[doings];
};

// In the program's memory.
struct Shared {
  pthread_mutex_t mutex[3];
  pthread_mutex_t barrier_mutex;
  pthread_cond_t barrier_cond;
  int arrived, generation;
  sem_t semaphore[8];
};

Plan g_plan;
Shared* g_shared;

uint64_t duration() noexcept { return random_below(one_in(2) ? g_plan.longest / 16 + 1 : g_plan.longest); }

void compute(uint64_t ns) noexcept {
  User* u = me();
  g.current->vectors = u->vectors;
  uint64_t chunk = g_plan.longest / 32 + 100;
  for (uint64_t done = 0; done < ns; done += chunk) {
    pass_time(chunk);
    step("computes");
    SIM_CHECK(me() == u && g.current->vectors == u->vectors,
              "thread %d computes with the registers of another", u->index);
  }
}

void yield() noexcept {
  const long none[6] = {};
  if (one_in(2))
    enter(upcall_yield_thread, __NR_sched_yield, none, true);
  else
    call(__NR_sched_yield);
}

// A call that may block: it does, or does not.
void make_call() noexcept {
  uint64_t ns = one_in(3) ? 0 : duration();
  long r;
  do r = call(__NR_read, 0, 0, static_cast<long>(ns));
  while (r == -EINTR);
  SIM_CHECK(r == 0, "a call answers %ld", r);
}

void sleep_a_while() noexcept {
  uint64_t deadline = g.now + duration();
  timespec ts = {static_cast<time_t>(deadline / 1'000'000'000u),
                 static_cast<long>(deadline % 1'000'000'000u)};
  long r;
  do r = call(__NR_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, reinterpret_cast<long>(&ts));
  while (r == -EINTR);
  SIM_CHECK(r == 0 && g.now >= deadline, "a sleep answers %ld, %ld ns too early", r,
            static_cast<long>(deadline - g.now));
}

// A page fault, as the kernel sees it: uninterruptible, or (userfaultfd) withdrawn for a signal and made again.
void fault(uint64_t ns) noexcept {
  User* u = me();
  g.current->vectors = u->vectors;
  uint64_t until = g.now + ns;
  bool interruptible = one_in(2);
  while (g.now < until) {
    block(Why::fault, until, nullptr, interruptible);
    deliver_signals();
  }
  SIM_CHECK(me() == u && g.current->vectors == u->vectors, "thread %d computes with the registers of another",
            u->index);
}

void in_section() noexcept {
  switch (random_below(5)) {
    case 0:
      return;
    case 1:
      return make_call();
    case 2:
      return fault(duration());
    case 3:
      return yield();
    default:
      return compute(duration());
  }
}

void lock(bool timed) noexcept {
  pthread_mutex_t* m = &g_shared->mutex[random_below(static_cast<uint64_t>(g_plan.mutexes))];
  if (timed) {
    uint64_t deadline = g.now + duration();
    if (sim_mutex_clocklock(m, deadline)) {
      SIM_CHECK(g.now >= deadline, "a lock is given up too early");
      return;
    }
  } else {
    sim_mutex_lock(m);
  }
  in_section();
  sim_mutex_unlock(m);
}

void do_something(bool may_create);

void* child_main(void*) {
  for (uint64_t n = random_below(2); n--;) do_something(false);
  return me();
}

void join(pthread_t p) noexcept {
  void* result = nullptr;
  int r;
  if (one_in(2)) {
    uint64_t patience = 1 + duration();
    do {
      uint64_t deadline = g.now + patience;
      patience *= 2;  // threads that only look at their watches keep the others from ending
      timespec ts = {static_cast<time_t>(deadline / 1'000'000'000u),
                     static_cast<long>(deadline % 1'000'000'000u)};
      r = pthread_clockjoin_np(p, &result, CLOCK_MONOTONIC, &ts);
      SIM_CHECK(r != ETIMEDOUT || g.now >= deadline, "a join is given up too early");
    } while (r == ETIMEDOUT);
  } else {
    r = pthread_join(p, &result);
  }
  SIM_CHECK(r == 0, "a join answers %d", r);
  SIM_CHECK(result == *reinterpret_cast<User**>(p + 32), "a join has the result of another thread");
}

pthread_t create(void* (*start)(void*), void* argument) noexcept {
  pthread_t p;
  int r = pthread_create(&p, nullptr, start, argument);
  SIM_CHECK(r == 0, "a thread is refused: %d", r);
  return p;
}

void create_children() noexcept {
  pthread_t child[2];
  uint64_t n = 1 + random_below(2);
  if (g_user_count + 2 * g_plan.workers > max_users) return;
  for (uint64_t i = 0; i < n; ++i) child[i] = create(child_main, nullptr);
  if (one_in(2)) compute(duration());
  for (uint64_t i = 0; i < n; ++i) join(child[i]);
}

void do_something(bool may_create) {
  uint64_t total = 0;
  for (uint32_t w : g_plan.weight) total += w;
  uint64_t at = random_below(total);
  int what = 0;
  while (at >= g_plan.weight[what]) at -= g_plan.weight[what++];
  me()->doing = doing_names[what];
  switch (static_cast<Doing>(what)) {
    case yielding:
      return yield();
    case calling:
      return make_call();
    case sleeping:
      return sleep_a_while();
    case faulting:
      return fault(duration());
    case locking:
    case timed_locking:
      return lock(what == timed_locking);
    case creating:
      if (may_create) return create_children();
      [[fallthrough]];
    default:
      return compute(duration());
  }
}

// All workers, on a mutex and a condition variable.
void barrier() noexcept {
  Shared& s = *g_shared;
  me()->doing = "waits at the barrier";
  sim_mutex_lock(&s.barrier_mutex);
  int generation = s.generation;
  if (++s.arrived == g_plan.workers) {
    s.arrived = 0;
    ++s.generation;
    pthread_cond_broadcast(&s.barrier_cond);
  }
  uint64_t patience = 1 + duration();
  while (s.generation == generation) {
    if (one_in(3)) {
      uint64_t deadline = g.now + patience;
      patience *= 2;
      timespec ts = {static_cast<time_t>(deadline / 1'000'000'000u),
                     static_cast<long>(deadline % 1'000'000'000u)};
      int r = pthread_cond_clockwait(&s.barrier_cond, &s.barrier_mutex, CLOCK_MONOTONIC, &ts);
      SIM_CHECK(r != ETIMEDOUT || g.now >= deadline, "a wait is given up too early");
    } else {
      pthread_cond_wait(&s.barrier_cond, &s.barrier_mutex);
    }
  }
  sim_mutex_unlock(&s.barrier_mutex);
}

// To the neighbour, and from the other one.
void exchange(int worker) noexcept {
  me()->doing = "posts";
  sem_post(&g_shared->semaphore[(worker + 1) % g_plan.workers]);
  me()->doing = "waits for a post";
  while (sem_wait(&g_shared->semaphore[worker])) {
  }
}

void* worker_main(void* argument) {
  auto worker = static_cast<int>(reinterpret_cast<intptr_t>(argument));
  for (int round = 0; round < g_plan.rounds; ++round) {
    for (int i = 0; i < g_plan.things; ++i) do_something(true);
    if (g_plan.weight[posting]) exchange(worker);
    if (g_plan.weight[locking] || g_plan.weight[timed_locking]) barrier();
  }
  return me();
}

}  // namespace

int doing_named(const char* name) noexcept {
  for (int i = 0; i < doings; ++i)
    if (!strcmp(doing_names[i], name)) return i;
  return -1;
}

void prepare_program() noexcept {
  Plan& p = g_plan;
  p.workers = 1 + static_cast<int>(random_below(one_in(2) ? 3 : 6));
  p.rounds = 1 + static_cast<int>(random_below(2));
  p.mutexes = 1 + static_cast<int>(random_below(3));
  // Mostly short: as long as some steps of the runtime, so that ends and beginnings meet.
  constexpr uint64_t longest[] = {300, 1'000, 3'000, 30'000, 300'000};
  p.longest = one_in(16) ? 3'000'000 : longest[random_below(5)];
  p.things = 1 + static_cast<int>(random_below(p.longest <= 3'000 ? 20 : 5));
  // Few kinds at a time: what a schedule does, it does often.
  static const Doing favourites[][3] = {
      {creating, creating, creating}, {locking, timed_locking, computing}, {calling, yielding, calling},
      {calling, faulting, computing}, {sleeping, timed_locking, faulting}, {posting, calling, sleeping}};
  if (g_options.focus >= 0) {
    p.weight[g_options.focus] = 1;
  } else if (one_in(2)) {
    for (Doing d : favourites[random_below(6)]) p.weight[d] += 1 + static_cast<uint32_t>(random_below(4));
  } else {
    uint64_t kinds = 1 + random_below(one_in(3) ? doings : 3);
    while (kinds--) p.weight[random_below(doings)] += 1 + static_cast<uint32_t>(random_below(4));
  }
  g_shared = static_cast<Shared*>(program_memory(sizeof(Shared)));
}

void* program_main(void*) {
  pthread_t worker[8];
  for (int i = 0; i < g_plan.workers; ++i)
    worker[i] = create(worker_main, reinterpret_cast<void*>(static_cast<intptr_t>(i)));
  if (one_in(2)) do_something(false);
  me()->doing = "joins";
  for (int i = 0; i < g_plan.workers; ++i) join(worker[i]);
  finish();
}

}  // namespace upcall::sim
