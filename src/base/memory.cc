// The functions that compilers call on their own. libc's use vector registers, which belong to the
// program wherever the runtime runs. Hidden: the program keeps libc's.
#include <cstddef>

extern "C" {
void* memcpy(void* to, const void* from, size_t n) noexcept {
  void* result = to;
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
  return result;
}
void* memset(void* to, int value, size_t n) noexcept {
  void* result = to;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(value) : "memory");
  return result;
}
void* memmove(void* to, const void* from, size_t n) noexcept {
  auto* d = static_cast<unsigned char*>(to);
  auto* s = static_cast<const unsigned char*>(from);
  if (d <= s || d >= s + n) return memcpy(to, from, n);
  while (n--) d[n] = s[n];
  return to;
}
int memcmp(const void* a, const void* b, size_t n) noexcept {
  auto* x = static_cast<const unsigned char*>(a);
  auto* y = static_cast<const unsigned char*>(b);
  for (; n; --n, ++x, ++y)
    if (*x != *y) return *x < *y ? -1 : 1;
  return 0;
}
int bcmp(const void* a, const void* b, size_t n) noexcept { return memcmp(a, b, n); }
}
