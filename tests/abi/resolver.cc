// abi: threads=8
// getaddrinfo, getpwuid_r and localtime_r (name services, dlopen inside libc, files) in threads.
#include <netdb.h>
#include <pwd.h>
#include <sys/socket.h>

#include "abi.h"

int main() {
  std::vector<pthread_t> threads;
  for (int i = 0; i < 8; ++i)
    threads.push_back(start([] {
      for (int round = 0; round < 5; ++round) {
        addrinfo hints = {}, *list = nullptr;
        hints.ai_family = AF_INET;
        hints.ai_socktype = SOCK_STREAM;
        const int error = getaddrinfo("localhost", "80", &hints, &list);
        if (error != 0) FAIL("getaddrinfo: %s", gai_strerror(error));
        CHECK(list != nullptr && list->ai_family == AF_INET);
        freeaddrinfo(list);
        passwd entry, *found = nullptr;
        char buffer[4096];
        CHECK_EQ(getpwuid_r(0, &entry, buffer, sizeof buffer, &found), 0);
        CHECK(found != nullptr && strcmp(found->pw_name, "root") == 0);
        const time_t epoch = 0;
        tm broken;
        CHECK(localtime_r(&epoch, &broken) != nullptr);
      }
    }));
  join_all(threads);
}
