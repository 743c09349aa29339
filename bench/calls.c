// Two threads that wake each other by turns through the kernel, and calls that many threads make at once: through pipes (io_test),
// and by calls that stay system calls which may block a kernel thread. What those cost decides whether it is worth while to make
// events of them.
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker.h"

enum { SENDERS = 64, PIECE = 16384, WAITERS = 16, CLOCK_EVERY = 64 };

// --- two threads that hand a number to and fro

// `give` hands the turn to the other side, `take` waits for this side's.
struct relay {
  const char* name;
  void (*give)(int side, long value);
  long (*take)(int side);
  pthread_barrier_t start;
  uint64_t end;
  long rounds;
};

static struct relay relay;

static void* relay_side(void* argument) {
  int me = (int)(intptr_t)argument;
  pthread_barrier_wait(&relay.start);
  for (long turn = me;; turn += 2) {
    if (me == 1 || turn > 0) {
      long value = relay.take(me);
      if (value == -1) return argument;
      EXPECT(value == turn - 1, "%s: %ld instead of %ld", relay.name, value, turn - 1);
    }
    bool last = me == 0 && turn % CLOCK_EVERY == 0 && now() > relay.end;
    relay.give(1 - me, last ? -1 : turn);
    if (last) {
      relay.rounds = turn;
      return argument;
    }
  }
}

static struct result run_relay(const struct options* options, const char* name, void (*give)(int, long),
                               long (*take)(int)) {
  relay.name = name;
  relay.give = give;
  relay.take = take;
  pthread_barrier_init(&relay.start, NULL, 2);
  uint64_t begin = now();
  relay.end = begin + duration(options);
  pthread_t threads[2];
  for (intptr_t i = 0; i < 2; ++i) threads[i] = start_thread(relay_side, (void*)i);
  for (intptr_t i = 0; i < 2; ++i)
    EXPECT(join_thread(threads[i]) == (void*)i, "%s: wrong thread joined", name);
  return (struct result){.value = (double)(now() - begin) / (double)relay.rounds, .count = relay.rounds};
}

static int queue;

struct note {
  long type;
  long value;
};

static void send_note(int side, long value) {
  struct note note = {side + 1, value};
  EXPECT(msgsnd(queue, &note, sizeof note.value, 0) == 0, "msgsnd: %s", strerror(errno));
}

static long receive_note(int side) {
  struct note note;
  EXPECT(msgrcv(queue, &note, sizeof note.value, side + 1, 0) == sizeof note.value, "msgrcv: %s",
         strerror(errno));
  return note.value;
}

struct result call_msgrcv(const struct options* options) {
  queue = msgget(IPC_PRIVATE, 0600);
  if (queue < 0) FAIL(LIMIT, "msgget: %s", strerror(errno));
  struct result result = run_relay(options, "call_msgrcv", send_note, receive_note);
  msgctl(queue, IPC_RMID, NULL);
  return result;
}

static int semaphores;
static _Atomic long passed;

static void post(int side, long value) {
  atomic_store(&passed, value);
  struct sembuf up = {(unsigned short)side, 1, 0};
  EXPECT(semop(semaphores, &up, 1) == 0, "semop: %s", strerror(errno));
}

static long await_post(int side) {
  struct sembuf down = {(unsigned short)side, -1, 0};
  EXPECT(semop(semaphores, &down, 1) == 0, "semop: %s", strerror(errno));
  return atomic_load(&passed);
}

struct result call_semop(const struct options* options) {
  semaphores = semget(IPC_PRIVATE, 2, 0600);
  if (semaphores < 0) FAIL(LIMIT, "semget: %s", strerror(errno));
  struct result result = run_relay(options, "call_semop", post, await_post);
  semctl(semaphores, 0, IPC_RMID);
  return result;
}

static mqd_t mail[2];

static void mail_to(int side, long value) {
  EXPECT(mq_send(mail[side], (const char*)&value, sizeof value, 0) == 0, "mq_send: %s", strerror(errno));
}

static long take_mail(int side) {
  long value;
  EXPECT(mq_receive(mail[side], (char*)&value, sizeof value, NULL) == sizeof value, "mq_receive: %s",
         strerror(errno));
  return value;
}

struct result call_mq(const struct options* options) {
  struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = sizeof(long)};
  for (int side = 0; side < 2; ++side) {
    char name[64];
    snprintf(name, sizeof name, "/upcall-bench-%d-%d", (int)getpid(), side);
    mail[side] = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    if (mail[side] == (mqd_t)-1) FAIL(LIMIT, "mq_open: %s", strerror(errno));
    mq_unlink(name);
  }
  return run_relay(options, "call_mq", mail_to, take_mail);
}

// A pipe for each side.
static int there[2][2];

static void put_in(int side, long value) {
  EXPECT(write(there[side][1], &value, sizeof value) == sizeof value, "write: %s", strerror(errno));
}

static long read_out(int side) {
  long value;
  EXPECT(read(there[side][0], &value, sizeof value) == sizeof value, "read: %s", strerror(errno));
  return value;
}

// LinuxActivations, table 1: two threads by turns read and write; per message.
struct result io_test(const struct options* options) {
  for (int side = 0; side < 2; ++side) EXPECT(pipe(there[side]) == 0, "pipe: %s", strerror(errno));
  return run_relay(options, "io_test", put_in, read_out);
}

// What is in it is moved on to a private one.
static int own[2][2];

static long splice_out(int side) {
  long value;
  EXPECT(splice(there[side][0], NULL, own[side][1], NULL, sizeof value, 0) == sizeof value, "splice: %s",
         strerror(errno));
  EXPECT(read(own[side][0], &value, sizeof value) == sizeof value, "read: %s", strerror(errno));
  return value;
}

struct result call_splice(const struct options* options) {
  for (int side = 0; side < 2; ++side)
    EXPECT(pipe(there[side]) == 0 && pipe(own[side]) == 0, "pipe: %s", strerror(errno));
  return run_relay(options, "call_splice", put_in, splice_out);
}

// --- call_sendfile: a file to many slow readers

static struct {
  int file;
  uint64_t end;
  _Atomic long sent, received;
} sending;

static void* send_pieces(void* argument) {
  int to = (int)(intptr_t)argument;
  while (now() < sending.end) {
    off_t at = 0;
    ssize_t sent = sendfile(to, sending.file, &at, PIECE);
    EXPECT(sent > 0, "sendfile: %s", strerror(errno));
    atomic_fetch_add(&sending.sent, sent);
  }
  shutdown(to, SHUT_WR);
  return argument;
}

static void* receive_pieces(void* argument) {
  int from = (int)(intptr_t)argument;
  char buffer[PIECE];
  for (ssize_t got; (got = read(from, buffer, sizeof buffer)) != 0;) {
    EXPECT(got > 0, "read: %s", strerror(errno));
    atomic_fetch_add(&sending.received, got);
  }
  close(from);
  return argument;
}

struct result call_sendfile(const struct options* options) {
  sending.file = memfd_create("upcall-bench", 0);
  EXPECT(sending.file >= 0 && ftruncate(sending.file, PIECE) == 0, "memfd_create: %s", strerror(errno));
  pthread_t threads[2 * SENDERS];
  uint64_t begin = now();
  sending.end = begin + 2 * duration(options);
  for (int i = 0; i < SENDERS; ++i) {
    int pair[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair: %s", strerror(errno));
    threads[2 * i] = start_thread(receive_pieces, (void*)(intptr_t)pair[0]);
    threads[2 * i + 1] = start_thread(send_pieces, (void*)(intptr_t)pair[1]);
  }
  for (int i = 0; i < 2 * SENDERS; ++i) join_thread(threads[i]);
  EXPECT(sending.sent == sending.received, "call_sendfile: %ld sent, %ld received", sending.sent,
         sending.received);
  long pieces = sending.sent / PIECE;
  return (struct result){.value = (double)(now() - begin) / 1000 / (double)pieces, .count = pieces};
}

// --- call_waitid: many threads that each wait for a child

static _Atomic long children;

static void* wait_for_children(void* argument) {
  for (uint64_t end = *(const uint64_t*)argument; now() < end;) {
    pid_t child = fork();
    if (child == 0) {
      usleep(1000);
      _exit(7);
    }
    siginfo_t info;
    EXPECT(child > 0 && waitid(P_PID, (id_t)child, &info, WEXITED) == 0 && info.si_status == 7, "waitid: %s",
           strerror(errno));
    atomic_fetch_add(&children, 1);
  }
  return argument;
}

struct result call_waitid(const struct options* options) {
  uint64_t begin = now(), end = begin + 2 * duration(options);
  pthread_t threads[WAITERS];
  for (int i = 0; i < WAITERS; ++i) threads[i] = start_thread(wait_for_children, &end);
  for (int i = 0; i < WAITERS; ++i) join_thread(threads[i]);
  return (struct result){.value = (double)(now() - begin) / 1000 / (double)children, .count = children};
}
