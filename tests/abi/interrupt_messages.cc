// abi: threads=6
// signal(7): mq_send, mq_receive and their timed forms are restarted after a handler with SA_RESTART; semop, semtimedop,
// msgsnd and msgrcv never are.
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

#include "interrupt.h"

struct Message {
  long type;
  char text[1000];
};

static int queue, full, semaphore;
static Message message = {1, ""};

static void fill() {
  while (msgsnd(full, &message, sizeof message.text, IPC_NOWAIT) == 0) {
  }
  CHECK_EQ(errno, EAGAIN);
}

static mqd_t open_queue(const char* kind) {
  const std::string name = "/abi_" + std::string(kind) + std::to_string(getpid());
  mq_attr attributes = {};
  attributes.mq_maxmsg = 1;
  attributes.mq_msgsize = 8;
  const mqd_t fd = mq_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
  if (fd == -1 && errno == ENOSYS) skip("no message queues in this kernel");
  CHECK(fd != -1);
  mq_unlink(name.c_str());
  return fd;
}

int main() {
  const mqd_t to_read = open_queue("r"), to_write = open_queue("w");
  CHECK_EQ(mq_send(to_write, "x", 1, 0), 0);
  queue = msgget(IPC_PRIVATE, 0600), full = msgget(IPC_PRIVATE, 0600);
  semaphore = semget(IPC_PRIVATE, 1, 0600);
  CHECK(queue >= 0 && full >= 0 && semaphore >= 0);
  fill();
  char text[8];
  const timespec late = after_ns(1000 * kSecond, CLOCK_REALTIME), minutes = {1000, 0};
  sembuf down = {0, -1, 0}, up = {0, 1, 0};
  const auto feed = [&] { CHECK_EQ(mq_send(to_read, "abc", 3, 0), 0); };
  const auto take = [&] { CHECK_EQ(mq_receive(to_write, text, sizeof text, nullptr), 1); };
  const auto raise_it = [&] { CHECK_EQ(semop(semaphore, &up, 1), 0); };
  try_signals({
      {"mq_receive", [&] { return with_errno(mq_receive(to_read, text, sizeof text, nullptr)); }, feed, 3,
       Restart::yes},
      {"mq_timedreceive",
       [&] { return with_errno(mq_timedreceive(to_read, text, sizeof text, nullptr, &late)); }, feed, 3,
       Restart::yes},
      {"mq_send", [&] { return with_errno(mq_send(to_write, "x", 1, 0)); }, take, 0, Restart::yes},
      {"mq_timedsend", [&] { return with_errno(mq_timedsend(to_write, "x", 1, 0, &late)); }, take, 0,
       Restart::yes},
      {"semop", [&] { return with_errno(semop(semaphore, &down, 1)); }, raise_it, 0, Restart::never},
      {"semtimedop", [&] { return with_errno(semtimedop(semaphore, &down, 1, &minutes)); }, raise_it, 0,
       Restart::never},
      {"msgrcv",
       [] {
         Message got;
         return with_errno(msgrcv(queue, &got, sizeof got.text, 0, 0));
       },
       [] { CHECK_EQ(msgsnd(queue, &message, 10, 0), 0); }, 10, Restart::never},
      {"msgsnd",
       [] {
         const long result = with_errno(msgsnd(full, &message, sizeof message.text, 0));
         if (result == 0) fill();
         return result;
       },
       [] {
         Message got;
         CHECK_EQ(msgrcv(full, &got, sizeof got.text, 0, 0), sizeof got.text);
       },
       0, Restart::never},
  });
  msgctl(queue, IPC_RMID, nullptr);
  msgctl(full, IPC_RMID, nullptr);
  semctl(semaphore, 0, IPC_RMID);
}
