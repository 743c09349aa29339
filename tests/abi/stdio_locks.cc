// abi: threads=10
// stdio's locks between threads: lines under flockfile stay together, nothing is lost, ftrylockfile tells.
#include "abi.h"

int main() {
  FILE* file = tmpfile();
  CHECK(file != nullptr);
  std::vector<pthread_t> threads;
  for (int id = 0; id < 10; ++id)
    threads.push_back(start([file, id] {
      for (int line = 0; line < 300; ++line) {
        if (line % 2 == 0) {
          flockfile(file);
          for (int part = 0; part < 5; ++part) {
            fprintf(file, "%d ", id);
            if (line % 50 == 0) sched_yield();
          }
          putc_unlocked('\n', file);
          funlockfile(file);
        } else {
          fprintf(file, "%d %d %d %d %d \n", id, id, id, id, id);
        }
      }
    }));
  join_all(threads);
  rewind(file);
  int counts[10] = {}, a, b, c, d, e;
  char line[256];
  while (fgets(line, sizeof line, file) != nullptr) {
    CHECK_EQ(sscanf(line, "%d %d %d %d %d", &a, &b, &c, &d, &e), 5);
    CHECK(a == b && b == c && c == d && d == e && a >= 0 && a < 10);
    ++counts[a];
  }
  for (int count : counts) CHECK_EQ(count, 300);
  flockfile(file);
  join(start([file] { CHECK(ftrylockfile(file) != 0); }));
  funlockfile(file);
  fclose(file);
}
