// What the two halves of the storm share: the objects that threads use (storm_actions.cc) and the threads (storm.cc).
#pragma once

#include <semaphore.h>

#include "stress.h"

namespace upcall::test::storm {

constexpr int kMutexes = 6, kFutexLocks = 4, kRwLocks = 3, kBoxes = 3, kPipes = 4, kUnits = 5;
constexpr int kSignal = 40;  // a real-time signal: queued, so that as many arrive as were sent

extern Options options;
extern std::atomic<bool> stop;

struct Lock {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  Pair pair;
};
extern Lock locks[kMutexes];

struct FutexLock {
  std::atomic<uint32_t> word{0};  // 0 free, 1 held, 2 held and perhaps waited for
  Pair pair;
};
extern FutexLock futex_locks[kFutexLocks];

struct Shared {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  Pair pair;
};
extern Shared shared[kRwLocks];

// Blocks of memory change hands here.
struct Box {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  std::vector<uint64_t*> items;
  uint64_t put = 0, taken = 0, put_sum = 0, taken_sum = 0;
};
extern Box boxes[kBoxes];

struct Pipe {
  int ends[2];
  std::atomic<int64_t> written{0}, read{0};
};
extern Pipe pipes[kPipes];

extern sem_t units;
extern std::atomic<int> units_used;

extern sem_t doom_sem;
extern int doom_pipe[2];

struct Counts {
  std::atomic<int64_t> created{0}, ended{0}, joined{0}, detached{0}, cancelled{0}, children{0},
      children_ended{0}, signals_sent{0}, signals_handled{0}, key_destroyed{0}, timeouts{0};
};
extern Counts counts;

enum class State { kFree, kRunning, kGone };

// The manager's side of a slot. `guard` makes sure that a signal is only sent to a thread that still lives.
struct Worker {
  pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
  bool alive = false;  // by guard
  int64_t sent = 0;    // by guard
  std::atomic<int64_t> handled{0};
  std::atomic<State> state{State::kFree};
  std::atomic<bool> doomed{false};
  pthread_t thread{};
  bool cancelled = false;  // the manager's
  uint64_t seed = 0;
};
extern Worker workers[Table::kSlots];

extern thread_local Worker* own;  // null: not a worker
// Makes the thread of a free slot, which runs `body` with its Worker.
void create_worker(int index, Random& random, void* (*body)(void*));

using Action = void (*)(Random&);
// One of the things that threads do, at random.
Action some_action(Random& random);
void signal_someone(Random& random);
// From here on nobody signals the calling thread, and all that was sent has come.
void hear_out();
// Waits, never to return but by cancellation.
void be_cancelled(Random& random);
void prepare_objects();
// Nobody uses them any more.
void check_objects();

}  // namespace upcall::test::storm
