// abi: threads=66
// PR_GET_TID_ADDRESS and set_tid_address: each thread has a word of its own that is cleared at its end. Taken away and
// given back (stress-ng does so in every thread), the join still returns; another word is cleared and woken instead.
#include <linux/futex.h>
#include <sys/prctl.h>

#include "abi.h"

static uint32_t* word_of_self() {
  uint32_t* word = nullptr;
  CHECK_EQ(prctl(PR_GET_TID_ADDRESS, &word), 0);
  return word;
}

static void check() {
  uint32_t* word = word_of_self();
  CHECK(word != nullptr);
  CHECK_EQ(*word, gettid());
  CHECK_EQ(syscall(SYS_set_tid_address, nullptr), gettid());
  CHECK(word_of_self() == nullptr);
  CHECK_EQ(syscall(SYS_set_tid_address, word), gettid());
  CHECK(word_of_self() == word);
}

static std::atomic<uint32_t> other_word{1};

int main() {
  uint32_t* unused;
  if (prctl(PR_GET_TID_ADDRESS, &unused)) skip("the kernel does not know PR_GET_TID_ADDRESS");
  check();
  std::vector<pthread_t> threads;
  for (int i = 0; i < 64; ++i) threads.push_back(start(check));
  check();
  join_all(threads);
  join(start(check));
  CHECK_ERRNO(prctl(PR_GET_TID_ADDRESS, 16), EFAULT);

  const pthread_t detached = start([] { CHECK_EQ(syscall(SYS_set_tid_address, &other_word), gettid()); });
  CHECK_EQ(pthread_detach(detached), 0);
  // Not private, as the kernel wakes it.
  while (other_word != 0) futex(&other_word, FUTEX_WAIT, 1);
}
