// abi: threads=12
// Functions on message queues, POSIX's and System V's, are cancellation points (pthreads(7)); messages stay where they
// were.
#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>

#include "cancel.h"

struct Note {
  long type;
  char text[8];
};

static mqd_t none, full;
static int sysv_none, sysv_full;
static timespec late;

static mqd_t queue(const char* what, bool filled) {
  const std::string name = "/upcall-abi-" + std::to_string(getpid()) + what;
  mq_attr attributes = {};
  attributes.mq_maxmsg = 1;
  attributes.mq_msgsize = 8;
  const mqd_t q = mq_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600, &attributes);
  if (q < 0) skip("no POSIX message queues here");
  mq_unlink(name.c_str());
  if (filled) CHECK_EQ(mq_send(q, "full", 5, 0), 0);
  return q;
}

// Those of `from` are empty where the calls are to block.
static std::vector<Point> points(mqd_t from, mqd_t to, int sysv_from, int sysv_to) {
  static char text[8];
  return {
      {"mq_send", [to] { mq_send(to, "x", 2, 0); }},
      {"mq_timedsend", [to] { mq_timedsend(to, "x", 2, 0, &late); }},
      {"mq_receive", [from] { mq_receive(from, text, sizeof text, nullptr); }},
      {"mq_timedreceive", [from] { mq_timedreceive(from, text, sizeof text, nullptr, &late); }},
      {"msgsnd",
       [sysv_to] {
         const Note note = {1, "x"};
         msgsnd(sysv_to, &note, sizeof note.text, 0);
       }},
      {"msgrcv",
       [sysv_from] {
         Note note;
         msgrcv(sysv_from, &note, sizeof note.text, 0, 0);
       }},
  };
}

int main() {
  late = after_ns(1000 * kSecond, CLOCK_REALTIME);
  none = queue("none", false);
  full = queue("full", true);
  sysv_none = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
  sysv_full = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
  CHECK(sysv_none >= 0 && sysv_full >= 0);
  int filled = 0;
  const Note note = {1, "full"};
  msqid_ds limits;
  CHECK_EQ(msgctl(sysv_full, IPC_STAT, &limits), 0);
  limits.msg_qbytes = sizeof note.text;
  CHECK_EQ(msgctl(sysv_full, IPC_SET, &limits), 0);
  while (msgsnd(sysv_full, &note, sizeof note.text, IPC_NOWAIT) == 0) ++filled;
  CHECK_EQ(errno, EAGAIN);
  CHECK(filled > 0);

  // Pending: also where they would not block.
  cancel_pending(points(full, none, sysv_full, sysv_none));
  cancel_blocked(points(none, full, sysv_none, sysv_full));

  mq_attr now;
  CHECK_EQ(mq_getattr(none, &now), 0);
  CHECK_EQ(now.mq_curmsgs, 0);
  CHECK_EQ(mq_getattr(full, &now), 0);
  CHECK_EQ(now.mq_curmsgs, 1);
  CHECK_EQ(msgctl(sysv_none, IPC_STAT, &limits), 0);
  CHECK_EQ(limits.msg_qnum, 0);
  CHECK_EQ(msgctl(sysv_full, IPC_STAT, &limits), 0);
  CHECK_EQ(limits.msg_qnum, filled);
  msgctl(sysv_none, IPC_RMID, nullptr);
  msgctl(sysv_full, IPC_RMID, nullptr);
}
