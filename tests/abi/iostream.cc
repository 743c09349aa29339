// abi: threads=8
// C++ streams, locales and std::filesystem in threads; cout's lines arrive whole when written whole.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "abi.h"

int main() {
  std::vector<pthread_t> threads;
  for (int id = 0; id < 8; ++id)
    threads.push_back(start([id] {
      for (int round = 0; round < 100; ++round) {
        std::ostringstream text;
        text << id << ' ' << round << ' ' << 1.5 * id << ' ' << std::hex << id * 100;
        std::istringstream back(text.str());
        int a = -1, b = -1;
        double c = -1;
        back >> a >> b >> c;
        CHECK(a == id && b == round && c == 1.5 * id);
        std::cout << "line of text\n";
      }
      const auto path = std::filesystem::temp_directory_path() / ("abi_iostream_" + std::to_string(gettid()));
      std::ofstream(path) << id << '\n';
      int value = -1;
      std::ifstream(path) >> value;
      CHECK_EQ(value, id);
      CHECK(std::filesystem::remove(path));
    }));
  join_all(threads);
}
