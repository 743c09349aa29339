// abi: threads=8
// A program's own malloc that keeps something for each thread by a key (pthread_setspecific), as jemalloc and tcmalloc do: it
// is called by the loader and by glibc before main, and may not be called back by what it calls.
#include "abi.h"

namespace {

std::atomic<size_t> used{0};
std::atomic<int> known{0};
alignas(16) char memory[64 << 20];
pthread_key_t key;
std::atomic<int> made{0};  // 1: by somebody, 2: ready

void note_thread() {
  int none = 0;
  if (made.compare_exchange_strong(none, 1)) {
    if (pthread_key_create(&key, nullptr) != 0) abort();
    made = 2;
  }
  if (made != 2 || pthread_getspecific(key) != nullptr) return;
  static thread_local char here;
  if (pthread_setspecific(key, &here) != 0) abort();
  ++known;
}

}  // namespace

// NOLINTBEGIN: glibc's names
extern "C" void* malloc(size_t size) {
  note_thread();
  const size_t at = used.fetch_add((size + 31) & ~15ul);
  if (at + size + 16 > sizeof memory) abort();
  memcpy(memory + at, &size, sizeof size);
  return memory + at + 16;
}
extern "C" void free(void*) {}
extern "C" void* calloc(size_t n, size_t size) { return malloc(n * size); }  // never given twice
extern "C" void* realloc(void* old, size_t size) {
  void* to = malloc(size);
  size_t had = 0;
  if (old != nullptr) memcpy(&had, static_cast<char*>(old) - 16, sizeof had);
  if (had != 0) memcpy(to, old, had < size ? had : size);
  return to;
}
// NOLINTEND

int main() {
  std::vector<pthread_t> threads;
  for (int i = 0; i < 8; ++i)
    threads.push_back(start([] {
      for (int n = 0; n < 100; ++n) std::string text(100, 'x');
    }));
  join_all(threads);
  CHECK(known >= 9);
}
