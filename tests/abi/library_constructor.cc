// abi: threads=6
// A library that the program is linked with starts threads in its constructor.
#include "abi.h"

extern "C" int early_join();

int main() {
  join(start([] {}));
  CHECK_EQ(early_join(), 4);
  join(start([] {}));
}
