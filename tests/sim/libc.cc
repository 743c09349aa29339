// The C library's part of a thread: made by clone, ends by exit, joined by a futex on its id; mutexes.
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/time_types.h>

#include <cerrno>

#include "linux/linux.h"
#include "program.h"
#include "pthread/hull.h"
#include "pthread/real.h"

namespace upcall::sim {

User g_users[max_users];
int g_user_count = 0;

namespace {

constexpr size_t stack_bytes = 64 * 1024, block_bytes = 8 * 1024;

Thread* exit_thread(Thread* t) noexcept {
  user_of(t)->ended = true;
  return linux_abi::sys_exit(t);
}

Thread* read_call(Thread* t) noexcept { return activation::blocking_call(t); }

linux_abi::Handler handler_of(long nr) noexcept {
  switch (nr) {
    case __NR_clone:
      return linux_abi::sys_clone;
    case __NR_exit:
      return exit_thread;
    case __NR_futex:
      return linux_abi::sys_futex;
    case __NR_clock_nanosleep:
      return linux_abi::sys_clock_nanosleep;
    case __NR_sched_yield:
      return linux_abi::sys_sched_yield;
    case __NR_read:
      return read_call;
    default:
      fail("the program makes system call %ld", nr);
  }
}

void run_user() {
  User* u = me();
  u->returned = u->start(u->argument);
  call(__NR_exit, 0);
  fail("thread %d comes back from its exit", u->index);
}

int create(pthread_t* out, const pthread_attr_t*, void* (*start)(void*), void* argument) {
  User* u = new_user(start, argument);
  constexpr uint64_t flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                             CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  *out = u->fs;
  auto tid = reinterpret_cast<long>(u->tid);
  long r = call(__NR_clone, flags, static_cast<long>(u->fs), tid, tid, static_cast<long>(u->fs));
  return r < 0 ? static_cast<int>(-r) : 0;
}

long futex(void* word, int op, uint32_t value, const __kernel_timespec* until = nullptr) noexcept {
  return call(__NR_futex, reinterpret_cast<long>(word), op, value, reinterpret_cast<long>(until), 0, ~0u);
}

User* user_at(pthread_t p) noexcept { return *reinterpret_cast<User**>(p + 32); }

atomic<uint32_t>* word_of(pthread_mutex_t* m) noexcept { return reinterpret_cast<atomic<uint32_t>*>(m); }

// Who holds it, as the machine sees it: two at once is a failure.
User*& holder_of(pthread_mutex_t* m) noexcept {
  return *reinterpret_cast<User**>(reinterpret_cast<char*>(m) + 8);
}

}  // namespace

User* new_user(void* (*start)(void*), void* argument) noexcept {
  SIM_CHECK(g_user_count < max_users, "too many threads");
  User* u = &g_users[g_user_count];
  *u = {};
  u->index = g_user_count++;
  u->start = start;
  u->argument = argument;
  u->vectors = u->saved_vectors = static_cast<uint64_t>(u->index) + 1;
  u->doing = "begins";
  auto* block = static_cast<char*>(program_memory(block_bytes));
  u->fs = reinterpret_cast<uint64_t>(block) + block_bytes / 2;
  *reinterpret_cast<uint64_t*>(u->fs) = u->fs;
  *reinterpret_cast<User**>(u->fs + 32) = u;
  u->tid = reinterpret_cast<atomic<uint32_t>*>(u->fs + 16);
  auto* top = reinterpret_cast<uint64_t*>(static_cast<char*>(program_memory(stack_bytes)) + stack_bytes) - 2;
  *top = reinterpret_cast<uint64_t>(&run_user);
  u->sp = top - 6;
  return u;
}

long call(long nr, long a, long b, long c, long d, long e, long f) noexcept {
  const long args[6] = {a, b, c, d, e, f};
  return enter(handler_of(nr), nr, args, false);
}

int real_join(pthread_t p, void** result) {
  User* u = user_at(p);
  while (uint32_t tid = u->tid->load(acquire)) futex(u->tid, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, tid);
  if (result) *result = u->returned;
  return 0;
}

void install_library() noexcept {
  auto& real = pthread_abi::g_real;
  real.create = create;
  real.join = real_join;
  real.clockjoin = [](pthread_t p, void** result, clockid_t, const timespec*) {
    return real_join(p, result);
  };
  real.detach = [](pthread_t) { return 0; };
  pthread::g_real.cond_flags_word = 9;
  // Nobody is cancelled here.
  pthread::g_real.cleanup_push = [](_pthread_cleanup_buffer*, void (*)(void*), void*) {};
  pthread::g_real.cleanup_pop = [](_pthread_cleanup_buffer*, int) {};
}

}  // namespace upcall::sim

using namespace upcall::sim;  // NOLINT
using upcall::acquire;
using upcall::relaxed;
using upcall::release;

extern "C" {

// glibc's: 0 free, 1 held, 2 held and perhaps waited for.
int sim_mutex_clocklock(pthread_mutex_t* m, uint64_t deadline) {
  auto* word = word_of(m);
  uint32_t free = 0;
  if (!word->compare_exchange_strong(free, 1, acquire, relaxed)) {
    __kernel_timespec ts = {static_cast<long long>(deadline / 1'000'000'000u),
                            static_cast<long long>(deadline % 1'000'000'000u)};
    while (word->exchange(2, acquire)) {
      long r = futex(word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 2, deadline == ~0ull ? nullptr : &ts);
      if (r == -ETIMEDOUT) return ETIMEDOUT;
    }
  }
  SIM_CHECK(!holder_of(m), "thread %d takes a mutex that thread %d holds", me()->index, holder_of(m)->index);
  holder_of(m) = me();
  return 0;
}
int sim_mutex_lock(pthread_mutex_t* m) noexcept { return sim_mutex_clocklock(m, ~0ull); }
int sim_mutex_unlock(pthread_mutex_t* m) noexcept {
  SIM_CHECK(holder_of(m) == me(), "thread %d gives back a mutex that it does not hold", me()->index);
  holder_of(m) = nullptr;
  if (word_of(m)->exchange(0, release) == 2) futex(m, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
  return 0;
}

}  // extern "C"
