// abi: threads=12 descriptors=events counters=event_waits:12 timeout=40
// The calls that wait under a mask or a time-out of their own: select, pselect, ppoll, epoll_pwait, epoll_pwait2. What they find, what
// is left of the time, and which signals end them.
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>

#include "descriptor.h"

namespace {

std::atomic<int> g_handled{0};

sigset_t only(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}

timespec in_ms(long ms) { return {ms / 1000, ms % 1000 * 1'000'000}; }
int64_t ns_of(const timespec& t) { return t.tv_sec * 1'000'000'000 + t.tv_nsec; }

// Each way to wait for one descriptor to be readable: 1 found, 0 time over, -1 with errno. The mask may be null, and the rest of the
// time is told by those that do.
using Wait = int (*)(int fd, timespec* time, const sigset_t* mask);

int by_select(int fd, timespec* time, const sigset_t*) {
  fd_set reads, writes, others;
  for (fd_set* set : {&reads, &writes, &others}) FD_ZERO(set);
  for (fd_set* set : {&reads, &others}) FD_SET(fd, set);
  timeval tv = {};
  if (time) tv = {time->tv_sec, time->tv_nsec / 1000};
  const int n = select(fd + 1, &reads, &writes, &others, time ? &tv : nullptr);
  if (time) *time = {tv.tv_sec, tv.tv_usec * 1000};
  if (n >= 0) CHECK_EQ(FD_ISSET(fd, &reads) ? 1 : 0, n);
  if (n >= 0) CHECK(!FD_ISSET(fd, &others) && !FD_ISSET(fd, &writes));
  if (n < 0) CHECK(FD_ISSET(fd, &reads) && FD_ISSET(fd, &others));
  return n;
}

int by_pselect6(int fd, timespec* time, const sigset_t* mask) {
  fd_set reads;
  FD_ZERO(&reads);
  FD_SET(fd, &reads);
  struct {
    const sigset_t* at;
    size_t size;
  } masked = {mask, 8};
  const long n = syscall(SYS_pselect6, fd + 1, &reads, nullptr, nullptr, time, mask ? &masked : nullptr);
  if (n >= 0) CHECK_EQ(FD_ISSET(fd, &reads) ? 1 : 0, n);
  return static_cast<int>(n);
}

int by_ppoll(int fd, timespec* time, const sigset_t* mask) {
  pollfd asked[2] = {{fd, POLLIN, 0}, {-1, POLLIN, 9}};
  const long n = syscall(SYS_ppoll, asked, 2, time, mask, 8);
  if (n == 1) CHECK_EQ(asked[0].revents, POLLIN);
  if (n >= 0) CHECK_EQ(asked[1].revents, 0);
  return static_cast<int>(n);
}

int with_epoll(int fd, timespec* time, const sigset_t* mask, bool fine) {
  const int at = epoll_create1(0);
  CHECK(at >= 0);
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = 77;
  CHECK_EQ(epoll_ctl(at, EPOLL_CTL_ADD, fd, &event), 0);
  event = {};
  const long n = fine ? syscall(441, at, &event, 1, time, mask, 8)
                      : epoll_pwait(at, &event, 1, time ? static_cast<int>(ns_of(*time) / kMs) : -1, mask);
  const int error = errno;
  if (n == 1) CHECK_EQ(event.data.u64, 77u);
  close(at);
  errno = error;
  return static_cast<int>(n);
}
int by_epoll_pwait(int fd, timespec* time, const sigset_t* mask) { return with_epoll(fd, time, mask, false); }
int by_epoll_pwait2(int fd, timespec* time, const sigset_t* mask) { return with_epoll(fd, time, mask, true); }

struct Way {
  Wait wait;
  bool tells_rest, masks;
};
constexpr Way kWays[] = {{by_select, true, false},
                         {by_pselect6, true, true},
                         {by_ppoll, true, true},
                         {by_epoll_pwait, false, true},
                         {by_epoll_pwait2, false, true}};

void finds(const Way& way, const Pair& p) {
  const pthread_t waits = start([&] {
    timespec time = in_ms(20'000);
    CHECK_EQ(way.wait(p.a, &time, nullptr), 1);
    if (way.tells_rest) CHECK(ns_of(time) < 20'000 * kMs && ns_of(time) > 5'000 * kMs);
    CHECK_EQ(get(p.a), 'x');
    CHECK_EQ(way.wait(p.a, nullptr, nullptr), 1);  // for ever
    CHECK_EQ(get(p.a), 'y');
  });
  settle();
  put(p.b, 'x');
  settle();
  put(p.b, 'y');
  join(waits);
}

void ends_in_time(const Way& way, const Pair& p) {
  timespec time = in_ms(30);
  const int64_t begun = now_ns();
  CHECK_EQ(way.wait(p.a, &time, nullptr), 0);
  CHECK(now_ns() - begun >= 30 * kMs);
  if (way.tells_rest) CHECK_EQ(ns_of(time), 0);
  time = in_ms(0);
  CHECK_EQ(way.wait(p.a, &time, nullptr), 0);
}

// A handler ends it, SA_RESTART or not; what is ignored does not.
void interrupted(const Way& way, const Pair& p) {
  std::atomic<bool> over{false};
  const pthread_t waits = start([&] {
    timespec time = in_ms(20'000);
    CHECK_ERRNO(way.wait(p.a, &time, nullptr), EINTR);
    if (way.tells_rest) CHECK(ns_of(time) < 20'000 * kMs && ns_of(time) > 5'000 * kMs);
    over = true;
  });
  settle();
  CHECK_EQ(pthread_kill(waits, SIGWINCH), 0);
  settle();
  CHECK(!over);
  const int before = g_handled;
  CHECK_EQ(pthread_kill(waits, SIGUSR1), 0);
  join(waits);
  CHECK_EQ(g_handled, before + 1);
}

// Blocked but for the call: what was pending before, and what comes meanwhile.
void masked(const Way& way, const Pair& p) {
  const sigset_t blocked = only(SIGUSR1);
  sigset_t open, now;
  sigemptyset(&open);
  const pthread_t waits = start([&] {
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &blocked, nullptr), 0);
    const int before = g_handled;
    CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
    CHECK_EQ(g_handled, before);
    timespec time = in_ms(20'000);
    CHECK_ERRNO(way.wait(p.a, &time, &open), EINTR);
    CHECK_EQ(g_handled, before + 1);
    CHECK_ERRNO(way.wait(p.a, &time, &open), EINTR);
    CHECK_EQ(g_handled, before + 2);
    // Found, or in time: the signal stays where it is.
    put(p.b, 'm');
    CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
    CHECK_EQ(way.wait(p.a, &time, &open), 1);
    CHECK_EQ(get(p.a), 'm');
    time = in_ms(30);
    CHECK_EQ(way.wait(p.a, &time, &blocked), 0);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &now), 0);
    CHECK(sigismember(&now, SIGUSR1) == 1);
    CHECK_EQ(g_handled, before + 2);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &open, nullptr), 0);
    CHECK_EQ(g_handled, before + 3);
  });
  while (g_handled % 3 != 1) nap(kMs);
  settle();
  CHECK_EQ(pthread_kill(waits, SIGUSR1), 0);
  join(waits);
}

void select_alone() {
  timeval time = {0, 20'000};
  const int64_t begun = now_ns();
  CHECK_EQ(select(0, nullptr, nullptr, nullptr, &time), 0);
  CHECK(now_ns() - begun >= 20 * kMs);
  CHECK_EQ(time.tv_sec + time.tv_usec, 0);
  const pthread_t sleeps = start([] {
    timeval left = {20, 0};
    CHECK_ERRNO(select(0, nullptr, nullptr, nullptr, &left), EINTR);
    CHECK(left.tv_sec < 20 && left.tv_sec > 5);
  });
  settle();
  CHECK_EQ(pthread_kill(sleeps, SIGWINCH), 0);
  settle();
  CHECK_EQ(pthread_kill(sleeps, SIGUSR1), 0);
  join(sleeps);
}

// What an earlier call was to be told of the time is not written by a later one.
void told_once(const Pair& p) {
  timespec time = in_ms(20'000);
  put(p.b, 'x');
  CHECK_EQ(by_ppoll(p.a, &time, nullptr), 1);
  const pthread_t puts = start([&] { settle(), put(p.b, 'y'); });
  CHECK_EQ(get(p.a), 'x');
  CHECK_EQ(by_ppoll(p.a, &time, nullptr), 1);
  join(puts);
  CHECK_EQ(get(p.a), 'y');
  const sigset_t blocked = only(SIGUSR1);
  sigset_t open;
  sigemptyset(&open);
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &blocked, nullptr), 0);
  CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
  time = {111, 222};
  CHECK_ERRNO(by_ppoll(p.a, nullptr, &open), EINTR);
  CHECK(time.tv_sec == 111 && time.tv_nsec == 222);
  CHECK_EQ(pthread_sigmask(SIG_SETMASK, &open, nullptr), 0);
}

// Waits whose signal is gone when they look go on for the rest of their time.
void signal_taken_back(const Pair& p) {
  const auto waits = [&](auto wait) {
    const pthread_t waiting = start([&] {
      const int64_t begun = now_ns();
      const int answered = wait();
      // The kernel leaves it open which of the two.
      if (answered == 0)
        CHECK(now_ns() - begun >= 300 * kMs);
      else
        CHECK_EQ(answered, -1);
    });
    nap(50 * kMs);
    CHECK_EQ(pthread_kill(waiting, SIGUSR2), 0);
    signal(SIGUSR2, SIG_IGN);
    join(waiting);
    signal(SIGUSR2, [](int) {});
  };
  waits([] {
    timeval time = {0, 300'000};
    return select(0, nullptr, nullptr, nullptr, &time);
  });
  waits([&] {
    timespec time = in_ms(300);
    return by_pselect6(p.a, &time, nullptr);
  });
}

// What a wait of another kind has answered does not matter to the next one.
void after_a_semaphore(const Pair& p) {
  const Pair q = pipe_pair();
  sem_t semaphore;
  CHECK_EQ(sem_init(&semaphore, 0, 0), 0);
  const pthread_t waits = start([&] {
    while (sem_wait(&semaphore) != 0) CHECK_EQ(errno, EINTR);
    pollfd asked[2] = {{p.a, POLLIN, 0}, {q.a, POLLIN, 0}};
    CHECK_EQ(poll(asked, 2, 20'000), 1);
    CHECK_EQ(asked[0].revents, POLLIN);
  });
  nap(20 * kMs);
  CHECK_EQ(pthread_kill(waits, SIGUSR2), 0);
  signal(SIGUSR2, SIG_IGN);
  CHECK_EQ(sem_post(&semaphore), 0);
  nap(20 * kMs);
  put(p.b, 'x');
  join(waits);
  CHECK_EQ(get(p.a), 'x');
  close_both(q);
}

void wrong_arguments() {
  const Pair p = pipe_pair();
  fd_set reads;
  FD_ZERO(&reads);
  FD_SET(p.a, &reads);
  timespec bad = {0, 1'000'000'000};
  CHECK_ERRNO(syscall(SYS_pselect6, p.a + 1, &reads, nullptr, nullptr, &bad, nullptr), EINVAL);
  CHECK_ERRNO(syscall(SYS_pselect6, -1, &reads, nullptr, nullptr, nullptr, nullptr), EINVAL);
  CHECK_ERRNO(syscall(SYS_pselect6, p.a + 1, 8L, nullptr, nullptr, nullptr, nullptr), EFAULT);
  CHECK_ERRNO(syscall(SYS_pselect6, p.a + 1, &reads, nullptr, nullptr, nullptr, 8L), EFAULT);
  pollfd asked = {p.a, POLLIN, 0};
  CHECK_ERRNO(syscall(SYS_ppoll, &asked, 1, &bad, nullptr, 8), EINVAL);
  CHECK_ERRNO(syscall(SYS_ppoll, &asked, 1, nullptr, &bad, 7), EINVAL);
  CHECK_ERRNO(syscall(SYS_ppoll, 8L, 1, nullptr, nullptr, 8), EFAULT);
  close_both(p);
  CHECK(FD_ISSET(p.a, &reads));
  CHECK_ERRNO(select(p.a + 1, &reads, nullptr, nullptr, nullptr), EBADF);
}

// Room to write, urgent data, and descriptors beside each other.
void sets() {
  const Pair w = pipe_pair();
  std::vector<char> much(1 << 16);
  CHECK_EQ(write(w.b, much.data(), much.size()), static_cast<ssize_t>(much.size()));
  const Pair o = tcp_pair();
  const auto waits_until = [&](int set, int fd, int other) {
    return start([=] {
      fd_set s[3];
      for (fd_set& one : s) FD_ZERO(&one);
      FD_SET(fd, &s[set]);
      FD_SET(other, &s[0]);
      CHECK_EQ(select(1024, &s[0], &s[1], &s[2], nullptr), 1);
      CHECK(FD_ISSET(fd, &s[set]));
      FD_CLR(fd, &s[set]);
      for (const fd_set& one : s)
        for (int i = 0; i < 1024; ++i) CHECK(!FD_ISSET(i, &one));
    });
  };
  const pthread_t writes = waits_until(1, w.b, o.a);
  settle();
  CHECK_EQ(read(w.a, much.data(), much.size()), static_cast<ssize_t>(much.size()));
  join(writes);
  const pthread_t urgent = waits_until(2, o.a, w.a);
  settle();
  CHECK_EQ(send(o.b, "!", 1, MSG_OOB), 1);
  join(urgent);
  close_both(w), close_both(o);
}

}  // namespace

int main() {
  struct sigaction action = {};
  action.sa_handler = [](int) { ++g_handled; };
  action.sa_flags = SA_RESTART;
  CHECK_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  const Pair p = unix_pair();
  for (const Way& way : kWays) {
    finds(way, p);
    ends_in_time(way, p);
    interrupted(way, p);
    g_handled = 0;
    if (way.masks) masked(way, p);
  }
  told_once(p);
  signal(SIGUSR2, [](int) {});
  signal_taken_back(p);
  after_a_semaphore(p);
  close_both(p);
  select_alone();
  sets();
  wrong_arguments();
}
