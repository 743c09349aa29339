// abi: threads=8
// SCHED_FIFO and SCHED_RR among a program's own threads: the highest ready one runs, at once when it is woken, and waiters
// are woken by priority. On one CPU, where order can be told.
#include <sched.h>
#include <semaphore.h>

#include "abi.h"

static std::atomic<int> order[8], next_place{0};
static sem_t gate, done;

static void set_priority(pthread_t thread, int policy, int priority) {
  sched_param param = {};
  param.sched_priority = priority;
  const int error = pthread_setschedparam(thread, policy, &param);
  if (error == EPERM) skip("no permission to use real-time priorities");
  CHECK_EQ(error, 0);
}

static pthread_t start_with(int policy, int priority, void* (*body)(void*), void* argument) {
  pthread_attr_t attributes;
  sched_param param = {};
  param.sched_priority = priority;
  CHECK_EQ(pthread_attr_init(&attributes), 0);
  CHECK_EQ(pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED), 0);
  CHECK_EQ(pthread_attr_setschedpolicy(&attributes, policy), 0);
  CHECK_EQ(pthread_attr_setschedparam(&attributes, &param), 0);
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, &attributes, body, argument), 0);
  return thread;
}

static void* wait_and_note(void* argument) {
  CHECK_EQ(sem_wait(&gate), 0);
  order[next_place++] = static_cast<int>(reinterpret_cast<intptr_t>(argument));
  CHECK_EQ(sem_post(&done), 0);
  return nullptr;
}

int main() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  CHECK_EQ(sem_init(&gate, 0, 0), 0);
  CHECK_EQ(sem_init(&done, 0, 0), 0);
  set_priority(pthread_self(), SCHED_FIFO, 50);
  // Waiters are woken by priority, not in the order in which they came.
  const int priorities[] = {10, 30, 20, 40};
  std::vector<pthread_t> threads;
  for (intptr_t p : priorities)
    threads.push_back(start_with(SCHED_FIFO, static_cast<int>(p), wait_and_note, reinterpret_cast<void*>(p)));
  nap(50 * kMs);  // they come to wait
  for (int i = 0; i < 4; ++i) CHECK_EQ(sem_post(&gate), 0);
  const char* processors = getenv("UPCALL_PROCESSORS");
  const bool several =
      processors && strcmp(processors, "1") != 0;  // Upcall was told to use more than the one CPU
  if (!several) CHECK_EQ(next_place, 0);           // the poster has the highest priority
  join_all(threads);
  if (!several) {
    const int expected[] = {40, 30, 20, 10};
    for (int i = 0; i < 4; ++i) CHECK_EQ(order[i], expected[i]);
  }
  // A higher one that is woken takes the processor at once; a lower one does not.
  threads.clear();
  next_place = 0;
  pthread_t high = start_with(SCHED_FIFO, 60, wait_and_note, reinterpret_cast<void*>(60));
  nap(20 * kMs);
  CHECK_EQ(sem_post(&gate), 0);
  if (several) settle();
  CHECK_EQ(next_place, 1);
  join(high);
  pthread_t low = start_with(SCHED_OTHER, 0, wait_and_note, nullptr);
  CHECK_EQ(sem_post(&gate), 0);
  if (!several) {
    burn(30 * kMs);
    CHECK_EQ(next_place, 1);
  }
  join(low);
  // Raising one that is ready, lowering oneself.
  next_place = 0;
  pthread_t first = start_with(SCHED_FIFO, 20, wait_and_note, reinterpret_cast<void*>(1));
  pthread_t second = start_with(SCHED_FIFO, 10, wait_and_note, reinterpret_cast<void*>(2));
  if (!several) {
    set_priority(second, SCHED_RR, 30);
    set_priority(pthread_self(), SCHED_FIFO, 5);
    CHECK_EQ(sem_post(&gate), 0);  // the second waits before the first
    CHECK_EQ(sem_post(&gate), 0);
    CHECK_EQ(order[0], 2);
    CHECK_EQ(order[1], 1);
  } else {
    CHECK_EQ(sem_post(&gate), 0);
    CHECK_EQ(sem_post(&gate), 0);
  }
  join(first);
  join(second);
  int policy;
  sched_param param = {};
  set_priority(pthread_self(), SCHED_OTHER, 0);
  CHECK_EQ(pthread_getschedparam(pthread_self(), &policy, &param), 0);
  CHECK_EQ(policy, SCHED_OTHER);
}
