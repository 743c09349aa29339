// abi: threads=6
// signal(7): reads of inotify, eventfd, timerfd and signalfd descriptors and io_getevents, io_pgetevents; getrandom of
// little goes on whatever comes. What is restarted and what is not, as the kernel has it.
#include <linux/aio_abi.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "interrupt.h"

static int counter, space, watch, timer, signals;
static char directory[] = "/tmp/abi_inotify_XXXXXX";
static aio_context_t context = 0;

static long read_counter(int fd) {
  uint64_t value;
  const long result = with_errno(read(fd, &value, sizeof value));
  return result;
}

static void touch() {
  const std::string path = std::string(directory) + "/file";
  FILE* file = fopen(path.c_str(), "w");
  CHECK(file);
  fclose(file);
  unlink(path.c_str());
}

static void submit_one() {
  static int ends[2];
  static char byte;
  CHECK_EQ(pipe(ends), 0);
  CHECK_EQ(write(ends[1], "x", 1), 1);
  iocb block = {}, *list[] = {&block};
  block.aio_fildes = static_cast<uint32_t>(ends[0]);
  block.aio_lio_opcode = IOCB_CMD_PREAD;
  block.aio_buf = reinterpret_cast<uint64_t>(&byte);
  block.aio_nbytes = 1;
  CHECK_EQ(syscall(SYS_io_submit, context, 1, list), 1);
  close(ends[0]);
  close(ends[1]);
}

static long get_events(bool with_mask) {
  io_event event;
  const timespec minutes = {1000, 0};
  static sigset_t none = signal_set({});
  const struct {
    const sigset_t* set;
    size_t size;
  } mask = {&none, 8};
  if (with_mask) return with_errno(syscall(SYS_io_pgetevents, context, 1, 1, &event, &minutes, &mask));
  return with_errno(syscall(SYS_io_getevents, context, 1, 1, &event, nullptr));
}

int main() {
  const sigset_t real_time = signal_set({SIGRTMIN});
  CHECK_EQ(sigprocmask(SIG_BLOCK, &real_time, nullptr), 0);
  counter = eventfd(0, 0), space = eventfd(0, 0), watch = inotify_init(),
  signals = signalfd(-1, &real_time, 0);
  timer = timerfd_create(CLOCK_MONOTONIC, 0);
  CHECK(counter >= 0 && space >= 0 && watch >= 0 && signals >= 0 && timer >= 0);
  const uint64_t most = 0xfffffffffffffffe;
  CHECK_EQ(write(space, &most, 8), 8);
  CHECK(mkdtemp(directory));
  CHECK(inotify_add_watch(watch, directory, IN_CREATE) >= 0);
  char buffer[4096];
  const uint64_t one = 1;
  const auto ring = [] {
    const itimerspec soon = {{0, 0}, {0, 1}};
    CHECK_EQ(timerfd_settime(timer, 0, &soon, nullptr), 0);
  };
  try_signals({
      {"eventfd", [] { return read_counter(counter); }, [&] { CHECK_EQ(write(counter, &one, 8), 8); }, 8,
       Restart::yes},
      {"timerfd", [] { return read_counter(timer); }, ring, 8, Restart::yes},
      {"signalfd", [&] { return with_errno(read(signals, buffer, sizeof buffer)); },
       [] { CHECK_EQ(kill(getpid(), SIGRTMIN), 0); }, sizeof(signalfd_siginfo), Restart::yes},
      {"inotify", [&] { return with_errno(read(watch, buffer, sizeof buffer)) > 0 ? 1l : -errno; }, touch, 1,
       Restart::yes},
  });
  if (syscall(SYS_io_setup, 8, &context) == 0)
    try_signals({
        {"io_getevents", [] { return get_events(false); }, submit_one, 1, Restart::never},
        {"io_pgetevents", [] { return get_events(true); }, submit_one, 1, Restart::never},
    });
  rmdir(directory);
  std::atomic<bool> stop{false};
  const pthread_t thread = start([&] {
    unsigned char bytes[256];
    while (!stop) CHECK_EQ(getrandom(bytes, sizeof bytes, 0), 256);
  });
  for (int i = 0; i < 100; ++i) {
    CHECK_EQ(pthread_kill(thread, SIGUSR2), 0);
    sched_yield();
  }
  stop = true;
  join(thread);
}
