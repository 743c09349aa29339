#include "activation/task_state.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>

#include "activation/activation.h"
#include "kernel/clock.h"
#include "kernel/futex.h"

namespace upcall::activation {

bool leave_descriptors() noexcept {
  return !kernel::is_error(kernel::sys(__NR_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE));
}

namespace {

// The descriptor, or -1: all states are unknown.
int open_task_directory() noexcept {
  if (!leave_descriptors()) return -1;
  long fd = kernel::sys(__NR_open, "/proc/self/task", O_RDONLY | O_DIRECTORY, 0);
  return kernel::is_error(fd) ? -1 : static_cast<int>(fd);
}

// The state letter of /proc/self/task/TID/stat. The name in the line may hold anything, its last ')' ends it.
TaskState task_state(int directory, int32_t tid) noexcept {
  if (directory < 0) return TaskState::unknown;
  char path[32];
  size_t n = 0;
  char digits[12];
  int d = 0;
  for (auto v = static_cast<uint32_t>(tid); v; v /= 10) digits[d++] = static_cast<char>('0' + v % 10);
  while (d) path[n++] = digits[--d];
  for (const char* s = "/stat"; *s; ++s) path[n++] = *s;
  path[n] = 0;
  long fd = kernel::sys(__NR_openat, directory, static_cast<const char*>(path), O_RDONLY, 0);
  if (kernel::is_error(fd)) return TaskState::unknown;
  char text[128];
  long bytes = kernel::sys(__NR_read, fd, static_cast<char*>(text), sizeof text);
  kernel::sys(__NR_close, fd);
  for (long i = bytes - 3; i >= 0; --i)
    if (text[i] == ')')
      return text[i + 2] == 'S' || text[i + 2] == 'D' ? TaskState::blocked : TaskState::running;
  return TaskState::unknown;
}

constexpr uint64_t patience_ns = 500'000;

// One question at a time, the monitor's. `question` is a futex: the id, 0 when it has been answered.
atomic<uint32_t> g_question{0}, g_answer{0};
atomic<uint32_t> g_started{0};

void answer_questions(void*) noexcept {
  begin_helper();
  int directory = open_task_directory();
  take_monitor_class();
  for (;;) {
    uint32_t tid = g_question.load(acquire);  // pairs with ask_task_state
    if (!tid) {
      kernel::futex_wait(&g_question, 0);
      continue;
    }
    g_answer.store(static_cast<uint32_t>(task_state(directory, static_cast<int32_t>(tid))), relaxed);
    g_question.store(0, release);  // pairs with ask_task_state
    kernel::futex_wake(&g_question, 1);
  }
}

}  // namespace

TaskState ask_task_state(int32_t tid) noexcept {
  if (!g_started.load(relaxed)) {
    int id;
    if (start_helper(answer_questions, nullptr, 32 * 1024, &id) > 0) g_started.store(1, relaxed);
    return TaskState::unknown;
  }
  if (g_question.load(acquire)) return TaskState::unknown;  // not answered yet; what it was about is over
  auto question = static_cast<uint32_t>(tid);
  g_question.store(question, release);  // pairs with answer_questions
  kernel::futex_wake(&g_question, 1);
  uint64_t give_up = kernel::now() + patience_ns;
  while (g_question.load(acquire) == question) {  // pairs with answer_questions
    if (kernel::now() >= give_up) return TaskState::unknown;
    kernel::futex_wait(&g_question, question, give_up);
  }
  return static_cast<TaskState>(g_answer.load(relaxed));
}

void forget_task_state() noexcept {
  g_started.store(0, relaxed);
  g_question.store(0, relaxed);
}

}  // namespace upcall::activation
