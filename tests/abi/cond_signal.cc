// abi: threads=22
// Condition variables: a signal per waiter, one broadcast for all, no wake-up lost between two hand-offs.
#include "abi.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, arrived = PTHREAD_COND_INITIALIZER;
static int waiting = 0, tickets = 0, served = 0;

static void consumer() {
  pthread_mutex_lock(&mutex);
  ++waiting;
  pthread_cond_signal(&arrived);
  while (tickets == 0) pthread_cond_wait(&cond, &mutex);
  --tickets;
  ++served;
  pthread_mutex_unlock(&mutex);
}

static void wave(bool broadcast) {
  std::vector<pthread_t> threads;
  waiting = tickets = served = 0;
  for (int i = 0; i < 10; ++i) threads.push_back(start(consumer));
  pthread_mutex_lock(&mutex);
  while (waiting < 10) pthread_cond_wait(&arrived, &mutex);
  if (broadcast) {
    tickets = 10;
    pthread_cond_broadcast(&cond);
  }
  pthread_mutex_unlock(&mutex);
  for (int i = 0; !broadcast && i < 10; ++i) {
    pthread_mutex_lock(&mutex);
    ++tickets;
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(&cond);
  }
  join_all(threads);
  CHECK_EQ(served, 10);
  CHECK_EQ(tickets, 0);
}

static int turn = 0;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;

static void player(int me) {
  for (int i = 0; i < 5000; ++i) {
    pthread_mutex_lock(&mutex);
    while (turn != me) pthread_cond_wait(&turned, &mutex);
    turn = 1 - me;
    pthread_cond_signal(&turned);
    pthread_mutex_unlock(&mutex);
  }
}

int main() {
  wave(false);
  wave(true);
  const pthread_t a = start([] { player(0); }), b = start([] { player(1); });
  join(a);
  join(b);
  CHECK_EQ(turn, 0);
}
