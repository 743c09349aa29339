// abi: threads=4
// system() and popen() in threads while others compute.
#include "abi.h"

int main() {
  std::atomic<bool> stop{false};
  const pthread_t computing = start([&stop] {
    while (!stop) burn(kMs);
  });
  std::vector<pthread_t> threads;
  for (int id = 1; id <= 3; ++id)
    threads.push_back(start([id] {
      const std::string command = "exit " + std::to_string(id);
      for (int round = 0; round < 3; ++round) {
        const int status = system(command.c_str());
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == id);
        FILE* output = popen(("echo " + std::to_string(id * 7) + "; exit 5").c_str(), "r");
        CHECK(output != nullptr);
        int value = 0;
        CHECK_EQ(fscanf(output, "%d", &value), 1);
        CHECK_EQ(value, id * 7);
        CHECK_EQ(WEXITSTATUS(pclose(output)), 5);
        FILE* input = popen("cat >/dev/null", "w");
        CHECK(input != nullptr);
        fputs("text\n", input);
        CHECK_EQ(pclose(input), 0);
      }
    }));
  join_all(threads);
  stop = true;
  join(computing);
}
