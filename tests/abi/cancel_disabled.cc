// abi: threads=10
// With cancellation disabled a request disturbs no call (pthread_setcancelstate(3)): blocked ones end when what they
// wait for comes, without an error and with all data, the request stays, and acts at the first cancellation point after
// cancellation has been enabled.
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>

#include "cancel.h"

static int ends[2], poll_ends[2], child_hold[2], epoll;
static sem_t sem;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool go = false;
static std::atomic<bool> leave{false};
static pthread_t target;
static pid_t child;

static const std::vector<Point> points = {
    {"read",
     [] {
       char byte = 0;
       CHECK_EQ(read(ends[0], &byte, 1), 1);
       CHECK_EQ(byte, 'x');
     }},
    {"poll",
     [] {
       pollfd one = {poll_ends[0], POLLIN, 0};
       CHECK_EQ(poll(&one, 1, -1), 1);
     }},
    {"epoll_wait",
     [] {
       epoll_event event;
       CHECK_EQ(epoll_wait(epoll, &event, 1, -1), 1);
     }},
    {"sem_wait", [] { CHECK_EQ(sem_wait(&sem), 0); }},
    {"pthread_cond_wait",
     [] {
       pthread_mutex_lock(&mutex);
       while (!go) CHECK_EQ(pthread_cond_wait(&cond, &mutex), 0);
       pthread_mutex_unlock(&mutex);
     }},
    {"nanosleep",
     [] {
       const timespec t = {0, 60 * kMs};
       CHECK_EQ(nanosleep(&t, nullptr), 0);
     }},
    {"waitpid", [] { wait_exit(child, 6); }},
    {"pthread_join", [] { CHECK(pthread_join(target, nullptr) == 0); }},
    {"sigwait",
     [] {
       const sigset_t set = signal_set({SIGUSR1});
       int signal;
       CHECK_EQ(sigwait(&set, &signal), 0);
     }},
};

int main() {
  for (int* one : {ends, poll_ends, child_hold}) CHECK_EQ(pipe(one), 0);
  CHECK_EQ(sem_init(&sem, 0, 0), 0);
  epoll = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLIN;
  CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, poll_ends[0], &event), 0);
  const sigset_t blocked = signal_set({SIGUSR1});
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &blocked, nullptr), 0);
  target = start([] {
    while (!leave) nap(kMs);
  });
  child = fork();
  if (child == 0) {
    char byte;
    close(child_hold[1]);
    read(child_hold[0], &byte, 1);
    _exit(6);
  }
  std::vector<Unwound> seen(points.size());
  std::vector<pthread_t> threads;
  for (size_t i = 0; i < points.size(); ++i) {
    Unwound* one = &seen[i];
    const Point* point = &points[i];
    threads.push_back(start([one, point] {
      int old = -1;
      CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old), 0);
      CHECK_EQ(old, PTHREAD_CANCEL_ENABLE);
      one->entered = true;
      point->call();
      pthread_testcancel();
      CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old), 0);
      CHECK_EQ(old, PTHREAD_CANCEL_DISABLE);
      one->returned = true;
      sleep(1000);
      FAIL("%s: the request is gone", point->name);
    }));
    while (!seen[i].entered) sched_yield();
  }
  settle();
  for (int round = 0; round < 3; ++round)
    for (pthread_t thread : threads) CHECK_EQ(pthread_cancel(thread), 0);
  nap(5 * kMs);
  CHECK_EQ(write(ends[1], "x", 1), 1);
  CHECK_EQ(write(poll_ends[1], "x", 1), 1);
  CHECK_EQ(sem_post(&sem), 0);
  pthread_mutex_lock(&mutex);
  go = true;
  pthread_mutex_unlock(&mutex);
  pthread_cond_signal(&cond);
  close(child_hold[1]);
  leave = true;
  CHECK_EQ(kill(getpid(), SIGUSR1), 0);
  for (size_t i = 0; i < points.size(); ++i) {
    CHECK(join(threads[i]) == PTHREAD_CANCELED);
    if (!seen[i].returned) FAIL("%s was cancelled though disabled", points[i].name);
  }
}
