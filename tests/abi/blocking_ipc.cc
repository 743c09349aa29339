// abi: threads=9
// System V and POSIX messages and semaphores leave the processor to others.
#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

#include "blocking.h"

int main() {
  const int queue = msgget(IPC_PRIVATE, 0600);
  CHECK(queue >= 0);
  struct Message {
    long type;
    char text[16];
  } sent = {1, "hello"}, got = {};
  others_go_on(
      "msgrcv", [&] { CHECK_EQ(msgrcv(queue, &got, sizeof got.text, 0, 0), sizeof got.text); },
      [&] { CHECK_EQ(msgsnd(queue, &sent, sizeof sent.text, 0), 0); });
  msgctl(queue, IPC_RMID, nullptr);
  CHECK(strcmp(got.text, "hello") == 0);

  const int semaphore = semget(IPC_PRIVATE, 1, 0600);
  CHECK(semaphore >= 0);
  others_go_on(
      "semop",
      [&] {
        sembuf down = {0, -1, 0};
        CHECK_EQ(semop(semaphore, &down, 1), 0);
      },
      [&] {
        sembuf up = {0, 1, 0};
        CHECK_EQ(semop(semaphore, &up, 1), 0);
      });
  semctl(semaphore, 0, IPC_RMID);

  const std::string name = "/abi_blocking_ipc_" + std::to_string(getpid());
  const mqd_t messages = mq_open(name.c_str(), O_RDWR | O_CREAT, 0600, nullptr);
  if (messages == static_cast<mqd_t>(-1)) {
    CHECK(errno == ENOSYS || errno == EACCES || errno == EMFILE);
    for (int i = 0; i < 3; ++i) join(start([] {}));
    return 0;
  }
  mq_unlink(name.c_str());
  std::vector<char> buffer(8192);
  others_go_on(
      "mq_receive", [&] { CHECK_EQ(mq_receive(messages, buffer.data(), buffer.size(), nullptr), 3); },
      [&] { CHECK_EQ(mq_send(messages, "abc", 3, 0), 0); });
}
