// Producers and consumers on three kinds of bounded queue: mutex and condition variables, semaphores, a pipe. What
// was put in comes out, once, and each producer's items in their order.
#include <semaphore.h>

#include <deque>

#include "stress.h"

namespace {

constexpr int kProducers = 6, kConsumers = 5, kKinds = 3;

struct Item {
  uint32_t producer, number;
};

std::atomic<bool> stop{false};

// pop returns false when the queue is closed and empty; close is called once no producer is left.
class CondQueue {
 public:
  void push(Item item) {
    pthread_mutex_lock(&mutex_);
    while (items_.size() >= 16) pthread_cond_wait(&room_, &mutex_);
    items_.push_back(item);
    pthread_cond_signal(&filled_);
    pthread_mutex_unlock(&mutex_);
  }
  bool pop(Item* item) {
    pthread_mutex_lock(&mutex_);
    while (items_.empty() && !closed_) pthread_cond_wait(&filled_, &mutex_);
    const bool got = !items_.empty();
    if (got) {
      *item = items_.front();
      items_.pop_front();
      pthread_cond_signal(&room_);
    }
    pthread_mutex_unlock(&mutex_);
    return got;
  }
  void close() {
    pthread_mutex_lock(&mutex_);
    closed_ = true;
    pthread_cond_broadcast(&filled_);
    pthread_mutex_unlock(&mutex_);
  }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t room_ = PTHREAD_COND_INITIALIZER, filled_ = PTHREAD_COND_INITIALIZER;
  std::deque<Item> items_;
  bool closed_ = false;
};

class SemQueue {
 public:
  SemQueue() {
    sem_init(&room_, 0, 16);
    sem_init(&filled_, 0, 0);
    pthread_spin_init(&spin_, PTHREAD_PROCESS_PRIVATE);
  }
  void push(Item item) {
    while (sem_wait(&room_) != 0) CHECK_EQ(errno, EINTR);
    pthread_spin_lock(&spin_);
    items_[head_++ % 16] = item;
    pthread_spin_unlock(&spin_);
    sem_post(&filled_);
  }
  bool pop(Item* item) {
    while (sem_wait(&filled_) != 0) CHECK_EQ(errno, EINTR);
    pthread_spin_lock(&spin_);
    const bool got = tail_ != head_;
    if (got) *item = items_[tail_++ % 16];
    pthread_spin_unlock(&spin_);
    sem_post(got ? &room_ : &filled_);  // closed: the token goes round
    return got;
  }
  void close() { sem_post(&filled_); }

 private:
  sem_t room_, filled_;
  pthread_spinlock_t spin_;
  Item items_[16];
  uint32_t head_ = 0, tail_ = 0;
};

class PipeQueue {
 public:
  PipeQueue() { CHECK_EQ(pipe(ends_), 0); }
  void push(Item item) { CHECK_EQ(write(ends_[1], &item, sizeof item), sizeof item); }
  bool pop(Item* item) {
    const ssize_t got = read(ends_[0], item, sizeof *item);
    CHECK(got == 0 || got == sizeof *item);
    return got != 0;
  }
  void close() { ::close(ends_[1]); }

 private:
  int ends_[2];
};

CondQueue cond_queue;
SemQueue sem_queue;
PipeQueue pipe_queue;
std::atomic<uint64_t> put[kKinds], put_sum[kKinds], taken[kKinds], taken_sum[kKinds];

uint64_t check_sum(Item item) { return uint64_t{item.producer} * 1'000'003 + item.number; }

template <class Queue>
void produce(Queue& queue, int kind, uint32_t id, uint64_t seed) {
  Random random(seed, static_cast<uint64_t>(kind) * 100 + id);
  for (uint32_t number = 1; !stop; ++number) {
    const Item item = {id, number};
    {
      const Doing doing(Op::kPipeWrite, kind);
      queue.push(item);
    }
    ++put[kind];
    put_sum[kind] += check_sum(item);
    if (random.one_in(50)) burn(random.below(100'000));
    if (random.one_in(200)) nap(random.below(500'000));
  }
}

// One producer's numbers grow for each consumer; between consumers they may overtake after the queue.
template <class Queue>
void consume(Queue& queue, int kind, uint32_t id, uint64_t seed) {
  Random random(seed, static_cast<uint64_t>(kind) * 100 + 50 + id);
  uint32_t last[kProducers] = {};
  for (;;) {
    Item item = {};
    {
      const Doing doing(Op::kPipeRead, kind);
      if (!queue.pop(&item)) return;
    }
    CHECK(item.producer < kProducers);
    CHECK(item.number > last[item.producer]);
    last[item.producer] = item.number;
    ++taken[kind];
    taken_sum[kind] += check_sum(item);
    if (random.one_in(50)) burn(random.below(100'000));
    if (random.one_in(200)) sched_yield();
  }
}

template <class Queue>
void run(Queue& queue, int kind, uint64_t seed, std::vector<pthread_t>& producers,
         std::vector<pthread_t>& consumers) {
  const int first = kind * (kProducers + kConsumers);
  for (uint32_t i = 0; i < kProducers; ++i)
    producers.push_back(start([&queue, kind, i, seed, first] {
      enter_slot(first + static_cast<int>(i));
      produce(queue, kind, i, seed);
      own_slot->op = Op::kEnded;
    }));
  for (uint32_t i = 0; i < kConsumers; ++i)
    consumers.push_back(start([&queue, kind, i, seed, first] {
      enter_slot(first + kProducers + static_cast<int>(i));
      consume(queue, kind, i, seed);
      own_slot->op = Op::kEnded;
    }));
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = begin(count, arguments);
  std::vector<pthread_t> producers, consumers;
  run(cond_queue, 0, options.seed, producers, consumers);
  run(sem_queue, 1, options.seed, producers, consumers);
  run(pipe_queue, 2, options.seed, producers, consumers);
  enter_slot(kKinds * (kProducers + kConsumers));
  nap(options.duration_ns());
  stop = true;
  {
    const Doing doing(Op::kJoining, 0);
    join_all(producers);
  }
  cond_queue.close();
  sem_queue.close();
  pipe_queue.close();
  {
    const Doing doing(Op::kJoining, 1);
    join_all(consumers);
  }
  for (int kind = 0; kind < kKinds; ++kind) {
    CHECK(put[kind] > 0);
    CHECK_EQ(put[kind], taken[kind]);
    CHECK_EQ(put_sum[kind], taken_sum[kind]);
  }
  printf("%llu through condition variables, %llu through semaphores, %llu through the pipe\n",
         (unsigned long long)put[0], (unsigned long long)put[1], (unsigned long long)put[2]);
}
