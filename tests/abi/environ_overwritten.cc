// abi: threads=1
// A program that writes over the arguments and the environment it was started with, as setproctitle does: the runtime
// must have kept what it was told (the statistics file that is asked for here).
#include "abi.h"

int main(int argc, char** argv) {
  char* end = argv[0];
  for (int i = 0; i < argc; ++i) end = argv[i] + strlen(argv[i]) + 1;
  for (char** entry = environ; *entry; ++entry) {
    CHECK(*entry >= argv[0]);  // one block
    if (*entry + strlen(*entry) + 1 > end) end = *entry + strlen(*entry) + 1;
  }
  clearenv();
  memset(argv[0], 'x', static_cast<size_t>(end - argv[0]) - 1);
  join(start([] { nap(kMs); }));
}
