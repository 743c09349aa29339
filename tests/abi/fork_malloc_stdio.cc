// abi: threads=4
// glibc's fork takes the locks of malloc and of the list of streams: the child may allocate, free, print, open and close
// streams however busy the others were with these (glibc manual, "Creating a Process"; malloc(3)).
#include "process.h"

int main() {
  std::atomic<bool> stop{false};
  std::vector<pthread_t> busy;
  for (int i = 0; i < 2; ++i)
    busy.push_back(start([&stop] {
      void* kept[16] = {};
      for (unsigned n = 0; !stop; ++n) {
        free(kept[n % 16]);
        kept[n % 16] = malloc(n * 37 % 5000 + 1);
      }
      for (void* p : kept) free(p);
    }));
  busy.push_back(start([&stop] {
    while (!stop) {
      FILE* stream = fopen("/dev/null", "w");
      CHECK(stream != nullptr);
      fprintf(stream, "%d\n", 5);
      fclose(stream);
    }
  }));
  busy.push_back(start([&stop] {
    while (!stop) fflush(nullptr);
  }));
  for (int round = 0; round < 12; ++round)
    run_child([] {
      std::vector<void*> blocks;
      for (size_t i = 0; i < 200; ++i) {
        blocks.push_back(malloc(i * 53 % 9000 + 1));
        CHECK(blocks.back() != nullptr);
      }
      for (void* block : blocks) free(block);
      char text[32] = {};
      FILE* stream = fmemopen(text, sizeof text, "w");
      CHECK(stream != nullptr);
      fprintf(stream, "%s", "child");
      fclose(stream);
      CHECK(strcmp(text, "child") == 0);
      fflush(nullptr);
      use_threads(2);
    });
  stop = true;
  join_all(busy);
}
