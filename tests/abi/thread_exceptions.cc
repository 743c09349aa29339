// abi: threads=30
// Exceptions in threads: caught, carried by exception_ptr, thrown from deep recursion while preempted; an uncaught
// one ends the process by terminate, with SIGABRT.
#include <exception>
#include <stdexcept>
#include <thread>

#include "abi.h"

static int deep(int depth) {
  if (depth == 0) throw std::out_of_range("bottom");
  burn(2000);
  return deep(depth - 1) + 1;
}

int main() {
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> carried(30);
  for (size_t i = 0; i < carried.size(); ++i)
    threads.emplace_back([&carried, i] {
      for (int round = 0; round < 20; ++round) {
        try {
          deep(50);
        } catch (...) {
          carried[i] = std::current_exception();
        }
        try {
          std::rethrow_exception(carried[i]);
        } catch (const std::out_of_range&) {
          sched_yield();
          CHECK(std::current_exception() == carried[i]);
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& one : carried) {
    try {
      std::rethrow_exception(one);
    } catch (const std::out_of_range& error) {
      CHECK(strcmp(error.what(), "bottom") == 0);
    }
  }
  const pid_t child = fork();
  if (child == 0) {
    close(2);
    std::thread([] { throw 1; }).join();
    _exit(0);
  }
  CHECK_EQ(WTERMSIG(wait_status(child)), SIGABRT);
}
