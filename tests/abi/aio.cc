// abi: threads=1
// glibc's asynchronous I/O, which makes threads of its own: aio_read, aio_write, aio_suspend, lio_listio.
#include <aio.h>

#include "abi.h"

int main() {
  FILE* file = tmpfile();
  CHECK(file != nullptr);
  char data[4][64], back[4][64] = {};
  aiocb blocks[4] = {};
  aiocb* list[4];
  for (int i = 0; i < 4; ++i) {
    snprintf(data[i], sizeof data[i], "block %d", i);
    blocks[i].aio_fildes = fileno(file);
    blocks[i].aio_buf = data[i];
    blocks[i].aio_nbytes = sizeof data[i];
    blocks[i].aio_offset = i * 64;
    blocks[i].aio_lio_opcode = LIO_WRITE;
    list[i] = &blocks[i];
  }
  CHECK_EQ(lio_listio(LIO_WAIT, list, 4, nullptr), 0);
  for (int i = 0; i < 4; ++i) CHECK_EQ(aio_return(&blocks[i]), 64);
  join(start([&] {
    for (int i = 0; i < 4; ++i) {
      blocks[i] = {};
      blocks[i].aio_fildes = fileno(file);
      blocks[i].aio_buf = back[i];
      blocks[i].aio_nbytes = sizeof back[i];
      blocks[i].aio_offset = i * 64;
      CHECK_EQ(aio_read(&blocks[i]), 0);
    }
    for (int i = 0; i < 4; ++i) {
      const aiocb* one = &blocks[i];
      while (aio_error(one) == EINPROGRESS) aio_suspend(&one, 1, nullptr);
      CHECK_EQ(aio_return(&blocks[i]), 64);
      CHECK(memcmp(data[i], back[i], 64) == 0);
    }
  }));
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  char byte = 0;
  aiocb waiting = {};
  waiting.aio_fildes = ends[0];
  waiting.aio_buf = &byte;
  waiting.aio_nbytes = 1;
  CHECK_EQ(aio_read(&waiting), 0);
  settle();
  CHECK_EQ(aio_error(&waiting), EINPROGRESS);
  CHECK_EQ(write(ends[1], "x", 1), 1);
  const aiocb* one = &waiting;
  while (aio_error(one) == EINPROGRESS) aio_suspend(&one, 1, nullptr);
  CHECK_EQ(aio_return(&waiting), 1);
  CHECK_EQ(byte, 'x');
}
