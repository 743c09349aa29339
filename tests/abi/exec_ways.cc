// abi: threads=7
// fexecve(3) and execveat(2) (a descriptor, a path beside a folder), a script, and a statically linked program (on which no
// library is preloaded), executed by forked children of threads, and by threads of forked children with threads of their own.
#include <fcntl.h>
#include <sys/stat.h>

#include "process.h"

namespace {

template <class F>
void expect(int code, F execute) {
  // By the child's only thread.
  wait_exit(start_child([&] {
              execute();
              _exit(99);
            }),
            code);
  // By one of its threads, beside others.
  wait_exit(start_child([&] {
              start([] {
                for (;;) burn(kMs);
              });
              start([] { nap(1000 * kSecond); });
              start([&] {
                execute();
                _exit(99);
              });
              for (;;) pause();
            }),
            code);
}

}  // namespace

int main() {
  Crowd crowd;
  const std::string fixed = executable_directory() + "/static_program";
  const int shell = open("/bin/sh", O_RDONLY | O_CLOEXEC),
            folder = open("/bin", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  CHECK(shell >= 0 && folder >= 0);
  char path[] = "/tmp/abi_script_XXXXXX";
  const int script = mkstemp(path);
  CHECK(script >= 0);
  const char text[] = "#!/bin/sh\nexit $1\n";
  CHECK_EQ(write(script, text, sizeof text - 1), static_cast<ssize_t>(sizeof text) - 1);
  CHECK_EQ(fchmod(script, 0755), 0);
  close(script);
  const char* command[] = {"sh", "-c", "exit 41", nullptr};
  const char* number[] = {"x", "43", nullptr};
  char** words = const_cast<char**>(command);
  char** with_number = const_cast<char**>(number);
  join(start([&] {
    expect(41, [&] { fexecve(shell, words, environ); });
    expect(41, [&] { syscall(SYS_execveat, shell, "", words, environ, AT_EMPTY_PATH); });
    expect(41, [&] { syscall(SYS_execveat, folder, "sh", words, environ, 0); });
    expect(43, [&] { execv(path, with_number); });
    expect(43, [&] { execv(fixed.c_str(), with_number); });
    expect(44, [&] {
      char* const none[] = {nullptr};
      char* const four[] = {const_cast<char*>("x"), const_cast<char*>("44"), nullptr};
      execve(fixed.c_str(), four, none);
    });
  }));
  unlink(path);
  crowd.end();
}
