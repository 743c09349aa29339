// What the programs share: checks that end the process at once, and short names for threads, clocks and futexes.
#pragma once

#include <errno.h>
#include <gnu/libc-version.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

namespace upcall::test {

constexpr int kSkip = 77;

// _exit, not exit: a failing check may run in a handler, a forked child or a thread that holds locks.
[[noreturn]] inline void fail(const char* file, int line, const char* format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  dprintf(2, "%s:%d: %s\n", file, line, text);
  _exit(1);
}

[[noreturn]] inline void skip(const char* why) {
  dprintf(2, "skip: %s\n", why);
  _exit(kSkip);
}

#define FAIL(...) ::upcall::test::fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(condition)                                                \
  do {                                                                  \
    if (!(condition)) FAIL("not so: %s (errno %d)", #condition, errno); \
  } while (0)
#define CHECK_EQ(a, b)                                                                                 \
  do {                                                                                                 \
    const long long left_value = static_cast<long long>(a), right_value = static_cast<long long>(b);   \
    if (left_value != right_value) FAIL("%s is %lld, not %lld (%s)", #a, left_value, right_value, #b); \
  } while (0)
// A call that must return -1 and set errno.
#define CHECK_ERRNO(call, expected)                                                                    \
  do {                                                                                                 \
    errno = 0;                                                                                         \
    const long long call_value = static_cast<long long>(call);                                         \
    const int call_errno = errno;                                                                      \
    if (call_value != -1 || call_errno != (expected))                                                  \
      FAIL("%s returned %lld with errno %d, not -1 with %d", #call, call_value, call_errno, expected); \
  } while (0)

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;

// How much slower than usual this machine may be (tests/abi/run --time).
inline int64_t time_factor() {
  const char* factor = getenv("ABI_TIME_FACTOR");
  return factor ? atoi(factor) : 1;
}

inline timespec to_timespec(int64_t ns) { return {ns / kSecond, ns % kSecond}; }

inline int64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t;
  CHECK_EQ(clock_gettime(clock, &t), 0);
  return t.tv_sec * kSecond + t.tv_nsec;
}

inline timespec after_ns(int64_t ns, clockid_t clock = CLOCK_MONOTONIC) {
  return to_timespec(now_ns(clock) + ns);
}

inline void nap(int64_t ns) {
  const timespec deadline = after_ns(ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) == EINTR) {
  }
}

// Long enough for other threads to have reached the call in which they block, also where other programs compute: then
// sleepers wait for their turn.
inline void settle() {
  int64_t late = 0;
  for (int i = 0; i < 10; ++i) {
    const int64_t begun = now_ns();
    nap(2 * kMs);
    late += now_ns() - begun - 2 * kMs;
  }
  if (late > 4 * kMs) nap(60 * kMs);
}

// Computes without a system call that could be a rescheduling point (the clock is read from the vDSO).
inline uint64_t burn(int64_t ns) {
  const int64_t end = now_ns() + ns;
  uint64_t value = 88172645463325252u;
  do {
    for (int i = 0; i < 2000; ++i) {
      value ^= value << 13;
      value ^= value >> 7;
      value ^= value << 17;
    }
  } while (now_ns() < end);
  return value;
}

template <class F>
pthread_t start(F function, const pthread_attr_t* attributes = nullptr) {
  auto* heap = new F(std::move(function));
  pthread_t thread;
  const int error = pthread_create(
      &thread, attributes,
      [](void* argument) -> void* {
        F* body = static_cast<F*>(argument);
        (*body)();
        delete body;
        return nullptr;
      },
      heap);
  if (error != 0) FAIL("pthread_create: %s", strerror(error));
  return thread;
}

inline void* join(pthread_t thread) {
  void* result = nullptr;
  const int error = pthread_join(thread, &result);
  if (error != 0) FAIL("pthread_join: %s", strerror(error));
  return result;
}

inline void join_all(const std::vector<pthread_t>& threads) {
  for (pthread_t thread : threads) join(thread);
}

// glibc's version is 2.this.
inline int libc_minor() {
  int minor = 0;
  CHECK_EQ(sscanf(gnu_get_libc_version(), "2.%d", &minor), 1);
  return minor;
}

// Of a thread that may have ended already, and is not joined: glibc answers 0 from 2.34 on.
inline void cancel_perhaps_ended(pthread_t thread) {
  const int error = pthread_cancel(thread);
  if (error != 0 && (error != ESRCH || libc_minor() >= 34)) FAIL("pthread_cancel: %s", strerror(error));
}

inline void kill_perhaps_ended(pthread_t thread, int signal, int answer = 0) {
  const int error = pthread_kill(thread, signal);
  if (error != answer && (error != ESRCH || libc_minor() >= 34))
    FAIL("pthread_kill: %s, not %s", strerror(error), strerror(answer));
}

inline long futex(void* word, int operation, uint32_t value, const void* timeout = nullptr,
                  void* word2 = nullptr, uint32_t value3 = 0) {
  return syscall(SYS_futex, word, operation, value, timeout, word2, value3);
}

inline void install(int signal, void (*handler)(int), int flags = 0) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  CHECK_EQ(sigaction(signal, &action, nullptr), 0);
}

inline void install_info(int signal, void (*handler)(int, siginfo_t*, void*), int flags = 0) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = flags | SA_SIGINFO;
  CHECK_EQ(sigaction(signal, &action, nullptr), 0);
}

inline sigset_t signal_set(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : signals) sigaddset(&set, signal);
  return set;
}

inline int wait_status(pid_t child) {
  int status = 0;
  pid_t got;
  do {
    got = waitpid(child, &status, 0);
  } while (got == -1 && errno == EINTR);
  CHECK_EQ(got, child);
  return status;
}

inline void wait_exit(pid_t child, int code) {
  const int status = wait_status(child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
    FAIL("child ended with wait status 0x%x, not exit code %d", status, code);
}

inline std::string executable_directory() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  CHECK(length > 0);
  std::string text(path, static_cast<size_t>(length));
  return text.substr(0, text.rfind('/'));
}

}  // namespace upcall::test

using namespace upcall::test;  // NOLINT: every user of this header is one whole program
