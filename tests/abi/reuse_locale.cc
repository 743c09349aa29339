// abi: threads=100 reused=20
// uselocale in one thread is not seen by the next; setlocale is seen by all that are made later.
#include <locale.h>
#include <threads.h>
#include <wctype.h>

#include "abi.h"

int main() {
  for (int i = 0; i < 20; ++i) {
    join(start([] {
      CHECK(uselocale(nullptr) == LC_GLOBAL_LOCALE);
      CHECK(!iswalpha(0xe4));
      const locale_t other = newlocale(LC_ALL_MASK, "C.UTF-8", nullptr);
      CHECK(other != nullptr);
      CHECK(uselocale(other) == LC_GLOBAL_LOCALE);
      CHECK(iswalpha(0xe4));
    }));
    join(start([] {
      CHECK(uselocale(nullptr) == LC_GLOBAL_LOCALE);
      CHECK(!iswalpha(0xe4));
    }));
  }
  for (int i = 0; i < 10; ++i) {
    CHECK(setlocale(LC_ALL, "C.UTF-8") != nullptr);
    for (int j = 0; j < 3; ++j) join(start([] { CHECK(iswalpha(0xe4)); }));
    CHECK(setlocale(LC_ALL, "C") != nullptr);
    for (int j = 0; j < 3; ++j) join(start([] { CHECK(!iswalpha(0xe4)); }));
  }
  // C11's functions on threads of both makes.
  thrd_t made;
  int result = 0;
  CHECK_EQ(thrd_create(
               &made, [](void*) -> int { return 9; }, nullptr),
           thrd_success);
  CHECK_EQ(thrd_join(made, &result), thrd_success);
  CHECK_EQ(result, 9);
  const pthread_t ours = start([] { thrd_exit(4); });
  CHECK_EQ(thrd_join(ours, &result), thrd_success);
  CHECK_EQ(result, 4);
  const pthread_t plain = start([] {});
  CHECK_EQ(thrd_join(plain, &result), thrd_success);
  CHECK_EQ(result, 0);
  CHECK_EQ(thrd_detach(start([] {})), thrd_success);
}
