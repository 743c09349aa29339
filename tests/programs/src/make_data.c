// Deterministic test data on standard output: make_data text|lines MEGABYTES.
//   text   words of a skewed vocabulary, with runs that do not compress: about a third of its size when packed
//   lines  random keys, many of them equal, to be sorted
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545f4914f6cdd1du;
}

static size_t put_text(char* at, size_t room) {
  static char words[4096][12];
  if (words[0][0] == 0)
    for (int i = 0; i < 4096; i++) {
      int length = 2 + (int)(next() % 9);
      for (int k = 0; k < length; k++) words[i][k] = (char)('a' + next() % 26);
    }
  size_t used = 0;
  while (room - used > 600) {
    uint64_t r = next();
    if (r % 257 == 0) {
      for (int k = 0; k < 512; k += 8) {
        uint64_t noise = next();
        memcpy(at + used + k, &noise, 8);
      }
      used += 512;
    } else {
      // The product of two draws prefers the low words, as language does.
      unsigned pick = (unsigned)((((r >> 16) & 4095) * ((r >> 32) & 4095)) >> 12);
      size_t length = strlen(words[pick]);
      memcpy(at + used, words[pick], length);
      at[used + length] = r % 13 ? ' ' : '\n';
      used += length + 1;
    }
  }
  return used;
}

static size_t put_lines(char* at, size_t room) {
  size_t used = 0;
  while (room - used > 64) {
    uint64_t r = next();
    used += (size_t)sprintf(at + used, "%05llx key %llu\n", (unsigned long long)(r & 0xfffff),
                            (unsigned long long)(r >> (20 + r % 29)));
  }
  return used;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  size_t left = (size_t)atol(argv[2]) * 1000000;
  static char block[1 << 16];
  while (left > 0) {
    size_t size =
        strcmp(argv[1], "text") == 0 ? put_text(block, sizeof block) : put_lines(block, sizeof block);
    if (size > left) size = left;
    if (fwrite(block, 1, size, stdout) != size) return 1;
    left -= size;
  }
  return fflush(stdout) != 0;
}
