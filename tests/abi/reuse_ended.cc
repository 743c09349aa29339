// abi: threads=62 reused=20
// What a thread answers that has ended and is not joined yet, whatever keeps it: it has no id any more. And the next
// thread in its place has one.
#include <sched.h>

#include "abi.h"

static cpu_set_t only(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return set;
}

static int first_cpu() {
  cpu_set_t set;
  CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &set)) ++cpu;
  return cpu;
}

struct Facts {
  pid_t id;
  void* stack;
  size_t bytes;
};

static Facts own_facts() {
  Facts f = {};
  pthread_attr_t a;
  f.id = gettid();
  CHECK_EQ(pthread_getattr_np(pthread_self(), &a), 0);
  CHECK_EQ(pthread_attr_getstack(&a, &f.stack, &f.bytes), 0);
  pthread_attr_destroy(&a);
  return f;
}

// Nothing but what is asked here says when it has come to its end.
static void await_end(pthread_t thread) {
  const int64_t limit = now_ns() + 10 * kSecond;
  int policy;
  sched_param param;
  while (pthread_getschedparam(thread, &policy, &param) == 0) {
    CHECK(now_ns() < limit);
    nap(kMs);
  }
}

static void ask(pthread_t ended, const Facts& facts) {
  int policy = 0;
  sched_param param = {};
  clockid_t clock;
  CHECK_EQ(pthread_getschedparam(ended, &policy, &param), ESRCH);
  CHECK_EQ(pthread_setschedparam(ended, SCHED_OTHER, &param), ESRCH);
  CHECK_EQ(pthread_setschedprio(ended, 0), ESRCH);
  CHECK_EQ(pthread_getcpuclockid(ended, &clock), ESRCH);
  kill_perhaps_ended(ended, 0);
  char name[16];
  CHECK_EQ(pthread_getname_np(ended, name, sizeof name), ENOENT);
  // The caller's, as the library asks for id 0.
  cpu_set_t mine, set;
  CHECK_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  CHECK_EQ(pthread_getaffinity_np(ended, sizeof set, &set), 0);
  CHECK(CPU_EQUAL(&mine, &set));
  pthread_attr_t a;
  void* stack;
  size_t bytes;
  CHECK_EQ(pthread_getattr_np(ended, &a), 0);
  CHECK_EQ(pthread_attr_getstack(&a, &stack, &bytes), 0);
  CHECK(stack == facts.stack);
  CHECK_EQ(bytes, facts.bytes);
  CPU_ZERO(&set);
  CHECK_EQ(pthread_attr_getaffinity_np(&a, sizeof set, &set), 0);
  CHECK(CPU_EQUAL(&mine, &set));
  pthread_attr_destroy(&a);
  // Nor has the kernel anything of that id.
  CHECK_ERRNO(syscall(SYS_sched_getaffinity, facts.id, sizeof set, &set), ESRCH);
  CHECK_ERRNO(syscall(SYS_sched_getparam, facts.id, &param), ESRCH);
  CHECK_ERRNO(syscall(SYS_tgkill, getpid(), facts.id, 0), ESRCH);
}

// A thread that lives has an id, and the library knows it.
static void ask_alive() {
  int policy;
  sched_param param;
  clockid_t clock;
  CHECK_EQ(pthread_getschedparam(pthread_self(), &policy, &param), 0);
  CHECK_EQ(pthread_getcpuclockid(pthread_self(), &clock), 0);
  pthread_mutexattr_t kind;
  pthread_mutex_t mutex;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&mutex, &kind);
  CHECK_EQ(pthread_mutex_lock(&mutex), 0);
  CHECK_EQ(pthread_mutex_lock(&mutex), EDEADLK);
  CHECK_EQ(mutex.__data.__owner, gettid());
  CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

int main() {
  const cpu_set_t one = only(first_cpu());
  CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
  for (int i = 0; i < 30; ++i) {
    Facts facts;
    pthread_t thread;
    CHECK_EQ(pthread_create(
                 &thread, nullptr,
                 [](void* out) -> void* {
                   *static_cast<Facts*>(out) = own_facts();
                   ask_alive();
                   return out;
                 },
                 &facts),
             0);
    await_end(thread);
    ask(thread, facts);
    // Set through a thread that has ended, it is the caller's.
    if (i == 0) CHECK_EQ(pthread_setaffinity_np(thread, sizeof one, &one), 0);
    // What is made meanwhile does not get its place.
    Facts other;
    pthread_t second = start([&other] { other = own_facts(); });
    join(second);
    CHECK(other.id != facts.id);
    CHECK(other.stack != facts.stack);
    ask(thread, facts);
    if (i % 3 == 2)
      CHECK_EQ(pthread_detach(thread), 0);
    else
      CHECK(join(thread) == &facts);
  }
  // Ended, never joined: the process does not wait for them, nor mind.
  for (int i = 0; i < 2; ++i) await_end(start([] {}));
}
