// abi: threads=500
// std::async, futures, promises and packaged tasks: values and exceptions come through.
#include <future>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "abi.h"

static int64_t tree_sum(int low, int high) {
  if (high - low <= 4) {
    int64_t sum = 0;
    for (int i = low; i < high; ++i) sum += i;
    return sum;
  }
  const int middle = (low + high) / 2;
  auto left = std::async(std::launch::async, tree_sum, low, middle);
  const int64_t right = tree_sum(middle, high);
  return left.get() + right;
}

int main() {
  CHECK_EQ(tree_sum(0, 2048), int64_t{2048} * 2047 / 2);

  auto failing = std::async(std::launch::async, []() -> int { throw std::runtime_error("from the thread"); });
  try {
    failing.get();
    FAIL("no exception");
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()) == "from the thread");
  }

  std::promise<std::string> promise;
  auto future = promise.get_future();
  std::thread setter([&promise] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    promise.set_value_at_thread_exit("late");
  });
  CHECK(future.wait_for(std::chrono::milliseconds(0)) != std::future_status::deferred);
  CHECK(future.get() == "late");
  setter.join();

  std::packaged_task<int(int)> task([](int x) { return x + 1; });
  auto result = task.get_future();
  std::thread runner(std::move(task), 41);
  CHECK_EQ(result.get(), 42);
  runner.join();
}
