#include "runtime/follow.h"

namespace upcall::runtime {

namespace {

constexpr const char* preload = "LD_PRELOAD=";
constexpr const char* file = "libupcall.so";

// ld.so takes spaces and colons alike, and knows no way to quote them.
bool separates(char c) noexcept { return c == ':' || c == ' ' || !c; }

bool is(const char* begin, const char* end, const char* name) noexcept {
  while (begin < end && *name && *begin == *name) ++begin, ++name;
  return begin == end && !*name;
}

bool is_ours(const char* begin, const char* end, const char* own) noexcept {
  const char* base = end;
  while (base > begin && base[-1] != '/') --base;
  return is(base, end, file) || is(begin, end, own);
}

// What is left of `list`, separators as they were. False: nothing.
bool without_ours(char* list, const char* own) noexcept {
  char* to = list;
  for (const char* at = list; *at;) {
    const char* end = at;
    while (!separates(*end)) ++end;
    const char* next = *end ? end + 1 : end;
    if (end == at || is_ours(at, end, own)) {  // with the separator behind it
      at = next;
      continue;
    }
    while (at < next) *to++ = *at++;
  }
  // The last one may have been ours: no separator stays behind the one before.
  if (to > list && separates(to[-1])) --to;
  *to = 0;
  return to > list;
}

}  // namespace

void leave_preload(char** env, const char* own) noexcept {
  char** to = env;
  for (char** from = env; *from; ++from) {
    char* value = *from;
    const char* name = preload;
    while (*name && *value == *name) ++value, ++name;
    if (*name || without_ours(value, own)) *to++ = *from;
  }
  *to = nullptr;
}

}  // namespace upcall::runtime
