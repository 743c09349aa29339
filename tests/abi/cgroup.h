// A control group of this process's own, where the machine lets us make one (root, usually); version 1 or 2.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "abi.h"

namespace upcall::test {

class ControlGroup {
 public:
  // Below the group that the process is in. Skips the test if there is no such controller or it may not be used.
  explicit ControlGroup(const std::string& controller) {
    find(controller);
    if (parent_.empty()) skip(("no control group controller '" + controller + "' here").c_str());
    remove_old();
    path_ = parent_ + "/upcall-abi-" + std::to_string(getpid());
    if (mkdir(path_.c_str(), 0755) != 0) skip("making a control group is not allowed here");
  }
  ~ControlGroup() {
    put(parent_ + "/cgroup.procs", std::to_string(getpid()));
    rmdir(path_.c_str());
  }
  bool version2() const { return version2_; }
  std::string get(const std::string& file) const { return get_from(path_, file); }
  std::string get_from_parent(const std::string& file) const { return get_from(parent_, file); }
  // Ends the test as skipped where the kernel does not want it.
  void set(const std::string& file, const std::string& value) const {
    if (put(path_ + "/" + file, value)) return;
    const std::string why = "control group: " + file + " cannot be set: " + strerror(errno);
    rmdir(path_.c_str());
    skip(why.c_str());
  }
  void enter() const { set("cgroup.procs", std::to_string(getpid())); }

 private:
  static std::string get_from(const std::string& folder, const std::string& file) {
    std::ifstream in(folder + "/" + file);
    std::string line;
    std::getline(in, line);
    return line;
  }
  static bool put(const std::string& file, const std::string& value) {
    const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool good = write(fd, value.data(), value.size()) == static_cast<ssize_t>(value.size());
    const int error = errno;
    close(fd);
    errno = error;
    return good;
  }
  void find(const std::string& controller) {
    std::string mount1, mount2;
    std::ifstream mounts("/proc/self/mounts");
    for (std::string line; std::getline(mounts, line);) {
      std::istringstream fields(line);
      std::string device, folder, type, options;
      fields >> device >> folder >> type >> options;
      if (type == "cgroup2") mount2 = folder;
      if (type == "cgroup" && ("," + options + ",").find("," + controller + ",") != std::string::npos)
        mount1 = folder;
    }
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
      const size_t first = line.find(':'), second = line.find(':', first + 1);
      const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
      const std::string in = line.substr(second + 1) == "/" ? "" : line.substr(second + 1);
      if (!mount1.empty() && names.find("," + controller + ",") != std::string::npos) {
        parent_ = mount1 + in;
        version2_ = false;
        return;
      }
      if (names == ",," &&
          get_from(mount2 + in, "cgroup.subtree_control").find(controller) != std::string::npos) {
        parent_ = mount2 + in;
        version2_ = true;
      }
    }
  }
  // What a test that was killed has left; those in use stay.
  void remove_old() const {
    DIR* directory = opendir(parent_.c_str());
    if (!directory) return;
    while (const dirent* entry = readdir(directory))
      if (strncmp(entry->d_name, "upcall-abi-", 11) == 0 && kill(atoi(entry->d_name + 11), 0) != 0)
        rmdir((parent_ + "/" + entry->d_name).c_str());
    closedir(directory);
  }

  std::string parent_, path_;
  bool version2_ = false;
};

}  // namespace upcall::test
