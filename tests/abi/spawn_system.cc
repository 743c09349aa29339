// abi: threads=9
// system(3): blocks SIGCHLD and ignores SIGINT and SIGQUIT in the caller while the command runs, puts them back afterwards, and
// the command has them as they were; several threads at once; its status; EINTR does not end it. popen(3): a command has none
// of the streams that were opened before, and pclose waits for its own.
#include "process.h"

namespace {

std::atomic<int> interrupted{0}, usr1{0};

}  // namespace

int main() {
  Crowd crowd;
  install(SIGINT, [](int) { ++interrupted; });
  install(SIGUSR1, [](int) { ++usr1; });  // no SA_RESTART
  const auto in_thread = [] {
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    for (int i = 0; i < 3; ++i) {
      // To its parent, which ignores it now; its own is as it was.
      const int status = system("kill -INT $PPID; kill -USR1 $PPID; exit 3");
      CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    }
    int status = system("kill -INT $$");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    status = system("no-such-command-at-all 2> /dev/null");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 127);
    CHECK(system(nullptr) != 0);
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    CHECK_EQ(memcmp(&before, &after, sizeof before), 0);
  };
  std::vector<pthread_t> threads;
  for (int i = 0; i < 2; ++i) threads.push_back(start(in_thread));
  join_all(threads);
  CHECK_EQ(interrupted.load(), 0);
  CHECK(usr1 > 0);
  struct sigaction action;
  CHECK_EQ(sigaction(SIGINT, nullptr, &action), 0);
  CHECK(action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL);
  raise(SIGINT);
  CHECK_EQ(interrupted.load(), 1);

  join(start([] {
    FILE* open[3];
    for (int i = 0; i < 3; ++i) CHECK((open[i] = popen("cat; exit 4", "w")) != nullptr);
    // The first one's input ends although the others still run: they do not hold its other end.
    for (FILE* stream : open) CHECK_EQ(WEXITSTATUS(pclose(stream)), 4);
    FILE* stream = popen("echo $((6 * 7))", "r");
    int value = 0;
    CHECK_EQ(fscanf(stream, "%d", &value), 1);
    CHECK_EQ(value, 42);
    CHECK_EQ(pclose(stream), 0);
  }));
  crowd.end();
}
