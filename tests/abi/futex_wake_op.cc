// abi: threads=20
// WAKE_OP: the operation on the second word, the comparison with its old value, wakes at both words.
#include <limits.h>

#include "abi.h"

static uint32_t first = 0, second = 0;

struct Case {
  uint32_t before, operation, after;
  bool wakes_second;
};

static uint32_t operation(uint32_t what, uint32_t argument, uint32_t compare, uint32_t with) {
  return what << 28 | compare << 24 | argument << 12 | with;
}

int main() {
  const Case cases[] = {
      {5, operation(FUTEX_OP_SET, 9, FUTEX_OP_CMP_EQ, 5), 9, true},
      {5, operation(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_NE, 5), 8, false},
      {5, operation(FUTEX_OP_OR, 8, FUTEX_OP_CMP_GT, 4), 13, true},
      {13, operation(FUTEX_OP_ANDN, 4, FUTEX_OP_CMP_LE, 12), 9, false},
      {6, operation(FUTEX_OP_XOR | FUTEX_OP_OPARG_SHIFT, 1, FUTEX_OP_CMP_LT, 7), 4, true},
      {7, operation(FUTEX_OP_SET, 1, FUTEX_OP_CMP_GE, 8), 1, false},
  };
  for (const Case& c : cases) {
    second = c.before;
    std::vector<pthread_t> threads;
    std::atomic<int> first_woken{0}, second_woken{0};
    threads.push_back(start([&] {
      CHECK_EQ(futex(&first, FUTEX_WAIT_PRIVATE, 0), 0);
      ++first_woken;
    }));
    for (int i = 0; i < 2; ++i)
      threads.push_back(start([&] {
        CHECK_EQ(futex(&second, FUTEX_WAIT_PRIVATE, c.before), 0);
        ++second_woken;
      }));
    settle();
    const void* wake_second = reinterpret_cast<const void*>(uintptr_t{1});
    CHECK_EQ(futex(&first, FUTEX_WAKE_OP_PRIVATE, 1, wake_second, &second, c.operation),
             c.wakes_second ? 2 : 1);
    CHECK_EQ(second, c.after);
    join(threads[0]);
    settle();
    CHECK_EQ(first_woken, 1);
    CHECK_EQ(second_woken, c.wakes_second ? 1 : 0);
    CHECK_EQ(futex(&second, FUTEX_WAKE_PRIVATE, INT_MAX), c.wakes_second ? 1 : 2);
    join(threads[1]);
    join(threads[2]);
  }
  join(start([] {}));
  join(start([] {}));
}
