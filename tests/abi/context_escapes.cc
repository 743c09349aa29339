// abi: threads=6
// Handlers that do not return: siglongjmp, setcontext and swapcontext to elsewhere (and back into the handler later, which
// then returns), the rest of the thread inside the handler, pthread_exit. The mask is as each of them says. While the
// thread computes, waits in a futex, sleeps, is blocked in the kernel.
#include <setjmp.h>
#include <ucontext.h>

#include "abi.h"

enum State { computing, in_futex, asleep, in_read, kStates };

static uint32_t word = 0;
static int ends[2];
static thread_local sigjmp_buf escape;
static thread_local ucontext_t outside, inside;
static thread_local std::atomic<int> phase{0};
static thread_local bool in_handler = false, was_outside = false;
static std::atomic<std::atomic<int>*> target_phase;
// The thread has a place to go to: no signal before.
static std::atomic<bool> prepared{false};

// Until the handler has been there.
static void stay(State state) {
  char byte;
  const timespec minute = {60, 0};
  while (phase == 0) switch (state) {
      case computing:
        burn(kMs / 10);
        break;
      case in_futex:
        futex(&word, FUTEX_WAIT_PRIVATE, 0);
        break;
      case asleep:
        nanosleep(&minute, nullptr);
        break;
      default:
        if (read(ends[0], &byte, 1) == 1) FAIL("nobody writes");
    }
}

static bool usr1_blocked() {
  sigset_t now;
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
  return sigismember(&now, SIGUSR1) == 1;
}

// On a stack of its own: the handler's frame waits.
static void visit() {
  CHECK(in_handler);
  CHECK(!usr1_blocked());
  nap(kMs / 4);
  was_outside = true;
  setcontext(&inside);
}

template <class F>
static void with_signal(F body) {
  std::atomic<bool> done{false};
  prepared = false;
  const pthread_t thread = start([&] {
    phase = 0;
    target_phase = &phase;
    body();
    CHECK(phase > 0);
    while (!done) nap(kMs / 4);
  });
  while (!prepared) nap(kMs / 4);
  for (std::atomic<int>* at = target_phase; *at == 0; nap(kMs / 2)) pthread_kill(thread, SIGUSR1);
  done = true;
  join(thread);
}

int main() {
  CHECK_EQ(pipe(ends), 0);
  for (int s = 0; s < kStates; ++s) {
    const auto state = static_cast<State>(s);
    install(SIGUSR1, [](int) {
      phase = 1;
      siglongjmp(escape, 1);
    });
    with_signal([state] {
      if (sigsetjmp(escape, 1) == 0) {
        prepared = true;
        stay(state);
        FAIL("the handler has returned");
      }
      CHECK(!usr1_blocked());
    });
    // The context that was saved before the signal; its mask too.
    install(SIGUSR1, [](int) {
      phase = 1;
      setcontext(&outside);
    });
    with_signal([state] {
      CHECK_EQ(getcontext(&outside), 0);
      if (phase == 0) {
        prepared = true;
        stay(state);
        FAIL("the handler has returned");
      }
      CHECK(!usr1_blocked());
    });
    // Out of the handler and back into it, as user-level schedulers do; then it returns to where it interrupted.
    install(SIGUSR1, [](int) {
      if (in_handler) return;
      in_handler = true;
      CHECK(usr1_blocked());
      CHECK_EQ(swapcontext(&inside, &outside), 0);
      CHECK(usr1_blocked());
      phase = 1;
    });
    with_signal([state] {
      std::vector<char> stack(128 * 1024);
      in_handler = was_outside = false;
      CHECK_EQ(getcontext(&outside), 0);
      outside.uc_stack.ss_sp = stack.data();
      outside.uc_stack.ss_size = stack.size();
      outside.uc_link = nullptr;
      makecontext(&outside, visit, 0);
      prepared = true;
      stay(state);
      CHECK(was_outside);
      CHECK(!usr1_blocked());
    });
    // The rest of the thread.
    install(SIGUSR1, [](int) {
      phase = 1;
      CHECK(usr1_blocked());
      join(start([] { nap(kMs / 4); }));
      pthread_exit(reinterpret_cast<void*>(77));
    });
    std::atomic<bool> ready{false};
    const pthread_t thread = start([&] {
      phase = 0;
      ready = true;
      stay(state);
      FAIL("the handler has returned");
    });
    while (!ready) nap(kMs / 4);
    CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
    CHECK_EQ(reinterpret_cast<intptr_t>(join(thread)), 77);
  }
}
