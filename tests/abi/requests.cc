// abi: threads=6 counters=driver_requests:19
// Requests of the library's own drivers, and user events: waited for, tested, cancelled, one of several (upcall/event.h).
#include "requests.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

namespace {

uint64_t in_ms(int64_t ms) { return upcall_now() + static_cast<uint64_t>(ms * kMs); }

void user_events() {
  upcall_request r = {}, limited = {};
  limited.deadline = in_ms(5);
  CHECK_EQ(upcall_submit(nullptr, &limited), ENOTSUP);
  CHECK_EQ(upcall_wait(&r, UPCALL_FOREVER), EINVAL);
  CHECK_EQ(upcall_submit(nullptr, &r), 0);
  CHECK_EQ(upcall_submit(nullptr, &r), EINVAL);
  CHECK_EQ(upcall_test(&r), 0);
  CHECK_EQ(upcall_wait(&r, in_ms(5)), ETIMEDOUT);
  const pthread_t completes = start([&] {
    settle();
    CHECK_EQ(upcall_complete(&r, 7), 0);
    CHECK_EQ(upcall_complete(&r, 8), EALREADY);
  });
  CHECK_EQ(upcall_wait(&r, UPCALL_FOREVER), 0);
  CHECK_EQ(r.result, 7);
  join(completes);
  CHECK_EQ(upcall_test(&r), 1);
  CHECK_EQ(upcall_cancel(&r), EALREADY);
  CHECK_EQ(upcall_submit(nullptr, &r), 0);
  const pthread_t other = start([&] { CHECK_EQ(upcall_wait(&r, UPCALL_FOREVER), 0); });
  settle();
  CHECK_EQ(upcall_wait(&r, UPCALL_FOREVER), EBUSY);
  CHECK_EQ(upcall_cancel(&r), 0);
  join(other);
  CHECK_EQ(r.result, -ECANCELED);
}

// Many threads complete what one waits for: each exactly once, and none is lost.
void races() {
  constexpr int rounds = 300, all = 4;
  std::vector<upcall_request> r(all);
  std::atomic<int> round{0}, completed{0};
  std::vector<pthread_t> threads;
  for (int t = 0; t < 2; ++t)
    threads.push_back(start([&] {
      for (int i = 1; i <= rounds; ++i) {
        while (round < i) sched_yield();
        for (auto& one : r) completed += upcall_complete(&one, i) == 0;
      }
    }));
  for (int i = 1; i <= rounds; ++i) {
    upcall_request* waits[all];
    for (int k = 0; k < all; ++k) {
      CHECK_EQ(upcall_submit(nullptr, &r[k]), 0);
      waits[k] = &r[k];
    }
    round = i;
    for (int left = all; left; --left) {
      size_t which = all;
      CHECK_EQ(upcall_wait_any(waits, all, UPCALL_FOREVER, &which), 0);
      CHECK(which < all && waits[which] &&
            waits[which]->result > 0);  // whoever was late in the round before, too
      waits[which] = nullptr;
    }
    CHECK_EQ(upcall_wait_any(waits, all, UPCALL_FOREVER, nullptr), EINVAL);
    while (completed < i * all) sched_yield();
  }
  join_all(threads);
  CHECK_EQ(completed.load(), rounds * all);
}

void timers() {
  upcall_request never = {};
  CHECK_EQ(upcall_submit(upcall_timers(), &never), EINVAL);
  upcall_request r[3] = {};
  const int64_t ms[3] = {30, 10, 20};
  const int64_t begun = now_ns();
  for (int i = 0; i < 3; ++i) {
    r[i].deadline = static_cast<uint64_t>(begun + ms[i] * kMs);
    CHECK_EQ(upcall_submit(upcall_timers(), &r[i]), 0);
  }
  upcall_request* all[3] = {&r[0], &r[1], &r[2]};
  for (const size_t expected : {1u, 2u, 0u}) {
    size_t which = 9;
    CHECK_EQ(upcall_wait_any(all, 3, UPCALL_FOREVER, &which), 0);
    CHECK(now_ns() >= begun + ms[which] * kMs);
    // On a busy machine several may be over by now; the first is named.
    CHECK(which == expected || upcall_test(&r[expected]));
    CHECK_EQ(r[which].result, 0);
    all[which] = nullptr;
  }
  r[0].deadline = in_ms(60'000);
  CHECK_EQ(upcall_submit(upcall_timers(), &r[0]), 0);
  CHECK_EQ(upcall_cancel(&r[0]), 0);
  CHECK_EQ(r[0].result, -ECANCELED);
}

void priorities() {
  upcall_request r[3] = {};
  upcall_request* all[3] = {&r[0], &r[1], &r[2]};
  r[1].priority = 5, r[2].priority = 5;
  for (auto& one : r) CHECK_EQ(upcall_submit(nullptr, &one), 0);
  for (auto& one : r) CHECK_EQ(upcall_complete(&one, 0), 0);
  size_t which = 9;
  CHECK_EQ(upcall_wait_any(all, 3, 0, &which), 0);
  CHECK_EQ(which, 1);
}

void descriptors() {
  int p[2];
  CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
  upcall_request a = {}, b = {}, c = {}, d = {};
  CHECK_EQ(upcall_submit_descriptor(&a, p[0], POLLIN), 0);
  CHECK_EQ(upcall_submit_descriptor(&b, p[0], POLLIN), 0);  // a second one for the same descriptor
  CHECK_EQ(upcall_submit_descriptor(&c, p[1], POLLOUT), 0);
  CHECK_EQ(upcall_wait(&c, in_ms(10'000)), 0);
  CHECK_EQ(c.result, POLLOUT);
  CHECK_EQ(upcall_wait(&a, in_ms(5)), ETIMEDOUT);
  CHECK_EQ(write(p[1], "x", 1), 1);
  CHECK_EQ(upcall_wait(&a, in_ms(10'000)), 0);
  CHECK_EQ(upcall_wait(&b, in_ms(10'000)), 0);
  CHECK_EQ(a.result, POLLIN);
  char byte;
  CHECK_EQ(read(p[0], &byte, 1), 1);
  // With a deadline, cancelled, and again.
  d.deadline = in_ms(5);
  CHECK_EQ(upcall_submit_descriptor(&d, p[0], POLLIN), 0);
  CHECK_EQ(upcall_wait(&d, UPCALL_FOREVER), 0);
  CHECK_EQ(d.result, -ETIMEDOUT);
  d.deadline = 0;
  CHECK_EQ(upcall_submit_descriptor(&d, p[0], POLLIN), 0);
  CHECK_EQ(upcall_cancel(&d), 0);
  CHECK_EQ(upcall_submit_descriptor(&d, p[0], POLLIN), 0);
  close(p[1]);
  CHECK_EQ(upcall_wait(&d, in_ms(10'000)), 0);
  CHECK(d.result & POLLHUP);
  close(p[0]);
  CHECK_EQ(upcall_submit_descriptor(&d, p[0], POLLIN), 0);
  CHECK_EQ(upcall_wait(&d, UPCALL_FOREVER), 0);
  CHECK_EQ(d.result, -EBADF);
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  CHECK_EQ(upcall_submit_descriptor(&d, file, POLLIN), 0);
  CHECK_EQ(upcall_wait(&d, UPCALL_FOREVER), 0);
  CHECK_EQ(d.result, POLLIN);
  close(file);
}

// What a cancelled request has waited for becomes ready where another copy of it is open: the request may be gone.
void cancelled_and_gone() {
  int p[2];
  CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
  const int kept = dup(p[0]);
  std::vector<unsigned char> memory(sizeof(upcall_request));
  auto* r = reinterpret_cast<upcall_request*>(memory.data());
  CHECK_EQ(upcall_submit_descriptor(r, p[0], POLLIN), 0);
  CHECK_EQ(upcall_submit_descriptor(r, p[1], POLLIN), EINVAL);  // it is pending, and stays as it is
  close(p[0]);
  CHECK_EQ(upcall_cancel(r), 0);
  const std::vector<unsigned char> gone(sizeof(upcall_request), 0x5a);
  memory = gone;
  CHECK_EQ(write(p[1], "x", 1), 1);
  upcall_request other = {};
  CHECK_EQ(upcall_submit_descriptor(&other, kept, POLLIN), 0);
  CHECK_EQ(upcall_wait(&other, UPCALL_FOREVER), 0);
  CHECK(memory == gone);
  close(p[1]);
  close(kept);
}

void children() {
  upcall_request r = {};
  CHECK_EQ(upcall_submit_child(&r, 0x3fffffff), ECHILD);
  const pid_t child = fork();
  if (child == 0) {
    nap(5 * kMs);
    _exit(3);
  }
  CHECK_EQ(upcall_submit_child(&r, child), 0);
  CHECK_EQ(upcall_wait(&r, in_ms(20'000)), 0);
  CHECK_EQ(r.result, 0);
  int status;
  CHECK_EQ(waitpid(child, &status, WNOHANG), child);
  CHECK_EQ(WEXITSTATUS(status), 3);
}

std::atomic<int> called_back{0};
sem_t all_called;

void call_backs() {
  sem_init(&all_called, 0, 0);
  upcall_request r = {};
  r.completed = [](upcall_request* again) {
    // Begins anew, as a periodic timer does.
    if (++called_back == 5) {
      sem_post(&all_called);
      return;
    }
    again->deadline += kMs;
    CHECK_EQ(upcall_submit(upcall_timers(), again), 0);
  };
  r.deadline = in_ms(1);
  CHECK_EQ(upcall_submit(upcall_timers(), &r), 0);
  while (sem_wait(&all_called)) CHECK_EQ(errno, EINTR);
  CHECK_EQ(called_back.load(), 5);
}

// A child has drivers of its own that work, and the parent's go on.
void after_fork() {
  upcall_request r = {};
  int p[2];
  CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
  CHECK_EQ(upcall_submit_descriptor(&r, p[0], POLLIN), 0);
  const pid_t child = fork();
  if (child == 0) {
    upcall_request own = {};
    const int e = eventfd(1, 0);
    CHECK_EQ(upcall_submit_descriptor(&own, e, POLLIN), 0);
    CHECK_EQ(upcall_wait(&own, UPCALL_FOREVER), 0);
    own.deadline = in_ms(2);
    CHECK_EQ(upcall_submit(upcall_timers(), &own), 0);
    CHECK_EQ(upcall_wait(&own, UPCALL_FOREVER), 0);
    _exit(0);
  }
  int status;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  CHECK_EQ(upcall_test(&r), 0);
  CHECK_EQ(write(p[1], "x", 1), 1);
  CHECK_EQ(upcall_wait(&r, UPCALL_FOREVER), 0);
  close(p[0]);
  close(p[1]);
}

}  // namespace

int main() {
  user_events();
  races();
  timers();
  priorities();
  descriptors();
  cancelled_and_gone();
  children();
  call_backs();
  after_fork();
}
