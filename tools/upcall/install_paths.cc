#include "install_paths.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <vector>

#include "elf_file.h"
#include "failure.h"

namespace upcall::tool {
namespace {

namespace fs = std::filesystem;

// Throws unless `path` is a readable x86-64 shared library.
std::string check_library(const std::string& path) {
  auto refuse = [&](const std::string& why) {
    throw Failure(kCannotRun, fmt::format("cannot use the runtime '{}': {}", path, why));
  };
  char real[PATH_MAX];
  if (realpath(path.c_str(), real) == nullptr) {
    refuse(fmt::format("{}; reinstall Upcall or correct UPCALL_LIBRARY", strerror(errno)));
  }
  int fd = open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) refuse(fmt::format("{}; give read permission (chmod +r)", strerror(errno)));
  struct stat info = {};
  bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  ElfFile elf = regular ? read_elf(fd) : ElfFile();
  close(fd);
  if (!regular || elf.kind != ElfFile::Kind::shared || !elf.dynamic) {
    refuse("it is not an x86-64 shared library; reinstall Upcall or correct UPCALL_LIBRARY");
  }
  if (strpbrk(real, ": \t\n") != nullptr) {
    refuse(
        "its path has a colon or a blank, which LD_PRELOAD takes as a separator; install Upcall elsewhere");
  }
  return real;
}

std::string first_existing(const std::string& what, const std::vector<fs::path>& candidates) {
  std::string tried;
  for (const auto& candidate : candidates) {
    if (access(candidate.c_str(), F_OK) == 0) return candidate.string();
    tried += (tried.empty() ? "" : ", ") + candidate.parent_path().lexically_normal().string();
  }
  throw Failure(kCannotRun,
                fmt::format("cannot find {}; looked in {}. Build or install Upcall completely{}", what, tried,
                            what == "libupcall.so" ? ", or set UPCALL_LIBRARY to its path" : ""));
}

}  // namespace

std::string own_path() {
  char path[PATH_MAX];
  ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  if (size <= 0) throw Failure(kFailed, "cannot read /proc/self/exe; is /proc mounted?");
  return std::string(path, static_cast<size_t>(size));
}

std::string find_library() {
  const char* chosen = getenv("UPCALL_LIBRARY");
  if (chosen != nullptr && *chosen != '\0') return check_library(chosen);
  fs::path here = fs::path(own_path()).parent_path();
  return check_library(first_existing(
      "libupcall.so", {here / "libupcall.so", here / UPCALL_LIBRARY_FROM_BIN / "libupcall.so",
                       here / "../lib/upcall/libupcall.so", here / "../lib64/upcall/libupcall.so",
                       here / "../lib/x86_64-linux-gnu/upcall/libupcall.so"}));
}

std::string find_bench_worker() {
  fs::path here = fs::path(own_path()).parent_path();
  return first_existing("upcall-bench-worker",
                        {here / "upcall-bench-worker", here / UPCALL_LIBEXEC_FROM_BIN / "upcall-bench-worker",
                         here / "../libexec/upcall/upcall-bench-worker"});
}

std::string find_bench_peer(const std::string& name) {
  fs::path path = fs::path(find_bench_worker()).parent_path() / name;
  return access(path.c_str(), X_OK) == 0 ? path.string() : "";
}

std::string find_on_path(const std::string& name) {
  const char* path = getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    struct stat info = {};
    if (access(candidate.c_str(), X_OK) == 0 && stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode))
      return candidate;
  }
  return "";
}

}  // namespace upcall::tool
