// Credentials as the kernel knows them: of the calling thread, and of every kernel thread of the process.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/fsuid.h>

#include <algorithm>

#include "abi.h"

// Programs that end with fewer rights than they had leave sentinels (SCHED_IDLE) that nobody may raise any more: beside other
// busy programs their end may take long.
namespace upcall::test {

constexpr unsigned kNobody = 65534;

inline void need_root() {
  if (geteuid() != 0) skip("changes user and group ids, which only root may");
  // A user namespace may know root only.
  const pid_t child = fork();
  if (child == 0) _exit(setgid(kNobody) == 0 && setuid(kNobody) == 0 && setgid(0) != 0 ? 0 : 1);
  if (wait_status(child) != 0) skip("this root may not become another user");
}

struct Status {
  unsigned uid[4], gid[4];  // real, effective, saved, of file accesses
  std::vector<unsigned> groups;
  std::string name;
};

inline bool read_status(const std::string& task, Status* to) {
  FILE* file = fopen(("/proc/self/task/" + task + "/status").c_str(), "re");
  if (!file) return false;  // it has just ended
  char line[4096];
  int found = 0;
  to->groups.clear();
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "Uid: %u %u %u %u", &to->uid[0], &to->uid[1], &to->uid[2], &to->uid[3]) == 4) ++found;
    if (sscanf(line, "Gid: %u %u %u %u", &to->gid[0], &to->gid[1], &to->gid[2], &to->gid[3]) == 4) ++found;
    if (strncmp(line, "Groups:", 7) == 0) {
      ++found;
      char* at = line + 7;
      for (char* end;; at = end) {
        const unsigned long group = strtoul(at, &end, 10);
        if (end == at) break;
        to->groups.push_back(static_cast<unsigned>(group));
      }
    }
  }
  fclose(file);
  return found == 3;
}

inline std::vector<std::string> tasks() {
  std::vector<std::string> names;
  DIR* directory = opendir("/proc/self/task");
  CHECK(directory != nullptr);
  while (const dirent* entry = readdir(directory))
    if (entry->d_name[0] != '.') names.push_back(entry->d_name);
  closedir(directory);
  return names;
}

// A thread that is just ending is not changed any more, and may be seen for a while.
inline bool ends(const std::string& task) {
  Status s;
  for (int i = 0; i < 400; ++i) {
    if (!read_status(task, &s)) return true;
    nap(5 * kMs);
  }
  return false;
}

// Every kernel thread has these user ids, group ids and, if asked for, groups.
inline void check_all(unsigned ruid, unsigned euid, unsigned suid, unsigned rgid, unsigned egid,
                      unsigned sgid, const std::vector<unsigned>* groups = nullptr) {
  for (const std::string& task : tasks()) {
    Status s;
    if (!read_status(task, &s)) continue;
    const unsigned uid[4] = {ruid, euid, suid, euid}, gid[4] = {rgid, egid, sgid, egid};
    for (int i = 0; i < 4; ++i)
      if ((s.uid[i] != uid[i] || s.gid[i] != gid[i]) && !ends(task))
        FAIL("kernel thread %s has user ids %u %u %u %u and group ids %u %u %u %u, not %u %u %u and %u %u %u",
             task.c_str(), s.uid[0], s.uid[1], s.uid[2], s.uid[3], s.gid[0], s.gid[1], s.gid[2], s.gid[3],
             ruid, euid, suid, rgid, egid, sgid);
    if (groups && s.groups != *groups)
      FAIL("kernel thread %s has %zu groups, not the %zu", task.c_str(), s.groups.size(), groups->size());
  }
}

inline void check_user(unsigned id) { check_all(id, id, id, 0, 0, 0); }

// Of the calling thread.
inline bool may_read(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    CHECK_EQ(errno, EACCES);
    return false;
  }
  close(fd);
  return true;
}

// A file that only root may read. It has no name: nothing is left of it.
class RootsFile {
 public:
  RootsFile() {
    char name[] = "/tmp/upcall-abi-XXXXXX";
    const int fd = mkostemp(name, O_CLOEXEC);  // mode 0600
    CHECK(fd >= 0);
    CHECK_EQ(unlink(name), 0);
    path_ = "/proc/self/fd/" + std::to_string(fd);
  }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

// Threads in the states in which a change may find them. They end when `stop` is called.
class Crowd {
 public:
  explicit Crowd(int of_each) {
    CHECK_EQ(pipe(pipe_), 0);
    for (int i = 0; i < of_each; ++i) {
      threads_.push_back(start([this] {
        ++here_;
        while (!stop_) burn(kMs / 10);
      }));
      threads_.push_back(start([this] {
        ++here_;
        char byte;
        ssize_t n;
        do n = read(pipe_[0], &byte, 1);
        while (n < 0 && errno == EINTR);
        CHECK_EQ(n, 0);
      }));
      threads_.push_back(start([this] {
        ++here_;
        while (!stop_) usleep(500);
      }));
      threads_.push_back(start([this] {
        ++here_;
        pthread_mutex_lock(&mutex_);
        while (!stop_) pthread_cond_wait(&changed_, &mutex_);
        pthread_mutex_unlock(&mutex_);
      }));
    }
    while (here_ < static_cast<int>(threads_.size())) nap(kMs / 5);
    settle();
  }
  void stop() {
    pthread_mutex_lock(&mutex_);
    stop_ = true;
    pthread_cond_broadcast(&changed_);
    pthread_mutex_unlock(&mutex_);
    close(pipe_[1]);
    join_all(threads_);
    close(pipe_[0]);
  }

 private:
  std::atomic<int> here_{0};
  std::atomic<bool> stop_{false};
  int pipe_[2];
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
  std::vector<pthread_t> threads_;
};

}  // namespace upcall::test
