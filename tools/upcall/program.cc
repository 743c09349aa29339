#include "program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "elf_file.h"
#include "failure.h"

namespace upcall::tool {
namespace {

// Both are the kernel's: BINPRM_BUF_SIZE, and the depth at which exec gives ELOOP.
constexpr size_t kScriptLine = 256;
constexpr size_t kScriptDepth = 5;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Failure(kCannotRun, fmt::format("cannot run '{}': {}", path, why));
}

struct Fd {
  explicit Fd(const std::string& path) : value(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Fd() {
    if (value >= 0) close(value);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int value;
};

// 0, or the errno that execve would give for the file itself.
int executable_error(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return errno;
  if (S_ISDIR(info.st_mode)) return EISDIR;
  if (!S_ISREG(info.st_mode)) return EACCES;
  return faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

[[noreturn]] void refuse_errno(const std::string& path, int error) {
  bool absent = error == ENOENT || error == ENOTDIR;
  std::string advice = error == EISDIR ? "it is a directory; name a program in it"
                       : error == EACCES
                           ? "permission denied; it must be a regular file with execute permission (chmod +x)"
                       : absent ? std::string("no such file; check the name")
                                : std::string(strerror(error));
  throw Failure(absent ? kNotFound : kCannotRun, fmt::format("cannot run '{}': {}", path, advice));
}

std::string search(const std::string& name) {
  if (name.empty()) throw Failure(kNotFound, "cannot run '': the program's name is empty");
  if (name.find('/') != std::string::npos) {
    if (int error = executable_error(name)) refuse_errno(name, error);
    return name;
  }
  const char* variable = getenv("PATH");
  std::string list = variable != nullptr ? variable : "/bin:/usr/bin";
  std::string found;
  int found_error = 0;
  size_t at = 0;
  while (at <= list.size()) {
    size_t end = std::min(list.find(':', at), list.size());
    std::string folder = list.substr(at, end - at);
    std::string path = (folder.empty() ? "." : folder) + "/" + name;
    int error = executable_error(path);
    if (error == 0) return path;
    // Only what is there counts; a folder that may not be searched is passed over, as shells do.
    bool exists = error != EISDIR && access(path.c_str(), F_OK) == 0;
    if (exists && found.empty()) {
      found = path;
      found_error = error;
    }
    at = end + 1;
  }
  if (!found.empty()) refuse_errno(found, found_error);
  throw Failure(kNotFound, fmt::format("cannot run '{}': not found in PATH ({}); give its path, such as ./{}",
                                       name, list, name));
}

// ld.so ignores LD_PRELOAD paths in secure mode, that is where exec changes who the process is. The rules are
// those of the kernel's cap_bprm_creds_from_file: new effective ids against old real ones, no effect on
// mounts without set-uid or with no_new_privs, and file capabilities do not count for root.
void refuse_secure_mode(const std::string& path, int fd) {
  static const char* advice =
      "the loader ignores preloaded libraries in such programs; run a copy without it (cp PROGRAM .)";
  if (geteuid() != getuid() || getegid() != getgid()) {
    refuse(path,
           "the real and effective user or group of this process differ, so the loader ignores preloaded "
           "libraries; start it as one user");
  }
  struct stat info = {};
  struct statvfs mount = {};
  if (fstat(fd, &info) != 0 || fstatvfs(fd, &mount) != 0) refuse(path, strerror(errno));
  if ((mount.f_flag & ST_NOSUID) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return;
  if ((info.st_mode & S_ISUID) != 0 && info.st_uid != getuid()) {
    refuse(path, fmt::format("it is set-uid (to user {}); {}", info.st_uid, advice));
  }
  if ((info.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && info.st_gid != getgid()) {
    refuse(path, fmt::format("it is set-gid (to group {}); {}", info.st_gid, advice));
  }
  vfs_ns_cap_data caps = {};
  ssize_t size = fgetxattr(fd, "security.capability", &caps, sizeof caps);
  if (getuid() == 0 || size < static_cast<ssize_t>(XATTR_CAPS_SZ_1)) return;
  bool any = (caps.magic_etc & VFS_CAP_FLAGS_EFFECTIVE) != 0 || caps.data[0].permitted != 0 ||
             caps.data[1].permitted != 0;
  if (any) refuse(path, fmt::format("it has file capabilities (getcap shows them); {}", advice));
}

// The interpreter named by a #! line, "" when the file does not begin with one.
std::string script_interpreter(const std::string& path, int fd) {
  char line[kScriptLine];
  ssize_t size = pread(fd, line, sizeof line, 0);
  if (size < 2 || line[0] != '#' || line[1] != '!') return "";
  std::string text(line + 2, static_cast<size_t>(size - 2));
  text = text.substr(0, text.find('\n'));
  size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) refuse(path, "its #! line names no interpreter");
  size_t end = text.find_first_of(std::string(" \t\0", 3), begin);
  return text.substr(begin, end == std::string::npos ? end : end - begin);
}

bool is_glibc_loader(const std::string& name) {
  size_t slash = name.rfind('/');
  return name.compare(slash == std::string::npos ? 0 : slash + 1, 13, "ld-linux-x86-") == 0;
}

// The dynamic loader of an ELF program that Upcall can carry; "" for the loader itself.
std::string check_elf(const std::string& path, const ElfFile& elf) {
  switch (elf.kind) {
    case ElfFile::Kind::not_elf:
      refuse(path,
             "it is neither an ELF program nor a script with a #! line; name its interpreter, such as "
             "'upcall run sh FILE'");
    case ElfFile::Kind::damaged:
      refuse(path, "its ELF header is damaged or cut off; build or install it again");
    case ElfFile::Kind::other_machine:
      refuse(path,
             fmt::format("it is built for {}, and Upcall runs x86-64 programs only; use an x86-64 build",
                         elf.machine));
    case ElfFile::Kind::relocatable:
      refuse(path, "it is an ELF file but no program (an object file or a core dump); link it first");
    case ElfFile::Kind::shared:
    case ElfFile::Kind::program:
      break;
  }
  if (elf.interpreter.empty()) {
    if (is_glibc_loader(elf.soname)) return "";
    if (!elf.soname.empty()) refuse(path, "it is a shared library, not a program");
    refuse(path,
           "it is statically linked, so no loader can bring the runtime in; link it dynamically (without "
           "-static or -static-pie)");
  }
  if (!is_glibc_loader(elf.interpreter)) {
    refuse(path, fmt::format(
                     "its loader is {}, and Upcall works with glibc's ld-linux-x86-64.so.2 only; use a build "
                     "for glibc",
                     elf.interpreter));
  }
  if (access(elf.interpreter.c_str(), X_OK) != 0) {
    throw Failure(errno == ENOENT ? kNotFound : kCannotRun,
                  fmt::format("cannot run '{}': its loader {}: {}; install it", path, elf.interpreter,
                              strerror(errno)));
  }
  return elf.interpreter;
}

}  // namespace

Program check_program(const std::string& name) {
  Program program;
  program.path = search(name);
  std::string path = program.path;
  while (true) {
    program.chain.push_back(path);
    Fd file(path);
    if (file.value < 0) {
      refuse(path, fmt::format("it cannot be read to check it ({}); give read permission (chmod +r)",
                               strerror(errno)));
    }
    std::string interpreter = script_interpreter(path, file.value);
    if (interpreter.empty()) {
      program.loader = check_elf(path, read_elf(file.value));
      refuse_secure_mode(path, file.value);
      return program;
    }
    if (program.chain.size() > kScriptDepth)
      refuse(program.path, "its #! lines lead through too many interpreters");
    if (int error = executable_error(interpreter)) {
      bool absent = error == ENOENT || error == ENOTDIR;
      throw Failure(
          absent ? kNotFound : kCannotRun,
          fmt::format("cannot run '{}': its #! line names the interpreter '{}': {}; install it or correct "
                      "the line",
                      path, interpreter, strerror(error)));
    }
    path = interpreter;
  }
}

}  // namespace upcall::tool
