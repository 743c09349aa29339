// abi: threads=12 upcalls=3 descriptors=calls
// A blocked read, write (full pipe), readv and FIFO open leave the processor to others.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "blocking.h"

int main() {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  char byte = 0;
  others_go_on(
      "read", [&] { CHECK_EQ(read(ends[0], &byte, 1), 1); }, [&] { CHECK_EQ(write(ends[1], "a", 1), 1); });
  CHECK_EQ(byte, 'a');
  iovec part = {&byte, 1};
  others_go_on(
      "readv", [&] { CHECK_EQ(readv(ends[0], &part, 1), 1); }, [&] { CHECK_EQ(write(ends[1], "b", 1), 1); });
  CHECK_EQ(byte, 'b');

  std::vector<char> large(1 << 20, 'c');
  others_go_on(
      "write", [&] { CHECK_EQ(write(ends[1], large.data(), large.size()), large.size()); },
      [&] {
        for (size_t total = 0; total < large.size();) {
          const ssize_t got = read(ends[0], large.data(), 65536);
          CHECK(got > 0);
          total += static_cast<size_t>(got);
        }
      });

  char directory[] = "/tmp/abi_fifo_XXXXXX";
  CHECK(mkdtemp(directory) != nullptr);
  const std::string path = std::string(directory) + "/fifo";
  CHECK_EQ(mkfifo(path.c_str(), 0600), 0);
  int reading = -1, writing = -1;
  others_go_on(
      "open", [&] { reading = open(path.c_str(), O_RDONLY); },
      [&] { writing = open(path.c_str(), O_WRONLY); });
  CHECK(reading >= 0 && writing >= 0);
  unlink(path.c_str());
  rmdir(directory);
}
