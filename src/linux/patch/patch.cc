#include "linux/patch/patch.h"

#include "base/log.h"
#include "linux/patch/object.h"

namespace upcall::patch {
namespace {

struct Engine {
  Config config;
  bool phase_known;
  Phase phase;
  Vec<Object> objects;
  unsigned long nanoseconds;
  int locked;
};
constinit Engine g{};

unsigned long now() {
  struct {
    long s, ns;
  } t{};
  kernel::sys(__NR_clock_gettime, 1, &t);
  return static_cast<unsigned long>(t.s) * 1000000000ul + static_cast<unsigned long>(t.ns);
}

// Held for milliseconds at most, and only while objects come and go. Signals wait: a handler may load an
// object, too, or run in pages that are not executable for the moment.
class Lock {
 public:
  Lock() : begin_(now()) {
    unsigned long every = ~0ul;
    kernel::sys(__NR_rt_sigprocmask, 2, &every, &mask_, 8);
    while (__atomic_exchange_n(&g.locked, 1, __ATOMIC_ACQUIRE)) kernel::sys(__NR_sched_yield);
  }
  ~Lock() {
    g.nanoseconds += now() - begin_;
    __atomic_store_n(&g.locked, 0, __ATOMIC_RELEASE);  // pairs with the exchange above
    kernel::sys(__NR_rt_sigprocmask, 2, &mask_, nullptr, 8);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  unsigned long begin_;
  unsigned long mask_ = 0;
};

// A patched object's pages are copied, entry by entry, at each fork; and the scan has touched them all. Those that are the
// file's still are given back: the program touches few of them again.
void leave_clean_pages(uintptr_t start, uintptr_t end) {
  constexpr uint64_t of_file = 1ul << 61, present = 1ul << 63;  // proc_pid_pagemap(5)
  constexpr size_t most = 256;
  constexpr int at_fdcwd = -100, close_on_exec = 02000000, dont_need = 4;
  long fd = kernel::sys(__NR_openat, at_fdcwd, "/proc/self/pagemap", close_on_exec, 0);
  if (kernel::is_error(fd)) return;
  uintptr_t clean = 0;  // where a run of them begins
  auto end_run = [&clean](uintptr_t at) {
    if (clean) kernel::sys(__NR_madvise, clean, at - clean, dont_need);
    clean = 0;
  };
  uintptr_t at = start;
  while (at < end) {
    uint64_t entry[most];
    size_t wanted = (end - at) / kPage < most ? (end - at) / kPage : most;
    long got = kernel::sys(__NR_pread64, fd, static_cast<uint64_t*>(entry), wanted * 8, at / kPage * 8);
    if (got < 8) break;
    for (long i = 0; i < got / 8; ++i, at += kPage) {
      bool is_clean = (entry[i] & present) && (entry[i] & of_file);
      if (!is_clean) end_run(at);
      if (is_clean && !clean) clean = at;
    }
  }
  end_run(at);
  kernel::sys(__NR_close, fd);
}

bool is_own(uintptr_t start, uintptr_t end) {
  uintptr_t here = reinterpret_cast<uintptr_t>(&configure);
  return start <= here && here < end;
}

Object* find_object(uintptr_t start, uintptr_t end) {
  for (Object& o : g.objects)
    if (o.start <= start && end <= o.end) return &o;
  return nullptr;
}

void set_name(Object* o, const char* name) {
  size_t n = 0;
  for (; name[n] && n < sizeof o->name - 1; ++n) o->name[n] = name[n];
  o->name[n] = '\0';
}

bool critical(long nr) {
  return nr < 0 || nr == __NR_futex || nr == __NR_clone || nr == __NR_clone3 || nr == __NR_exit;
}

void count(const Object& o, Totals* t) {
  ++t->objects;
  t->candidates += o.sites.size();
  t->stub_bytes += o.stub_bytes;
  for (const Site& s : o.sites) switch (s.state) {
      case State::deferred:
        ++t->deferred;
        break;
      case State::patched:
        ++t->patched;
        break;
      case State::left_plain:
        ++t->left_plain;
        break;
      case State::not_code:
        ++t->not_code;
        break;
      case State::unpatched:
        ++t->unpatched;
        t->critical_unpatched += critical(s.nr);
        break;
    }
}

void log_object(const Object& o, unsigned long nanoseconds) {
  Totals t{};
  count(o, &t);
  if (!t.candidates) return;
  (Line() << "patch: " << o.name << ": " << t.candidates << " candidates, " << t.patched << " redirected, "
          << t.left_plain << " left plain, " << t.deferred << " put off, " << t.not_code << " not code, "
          << t.unpatched << " not possible, " << t.stub_bytes << " bytes of stubs, " << nanoseconds / 1000
          << " us")
      .write();
  for (const Site& s : o.sites) {
    if (s.state != State::unpatched) continue;
    Line line;
    line << "patch: " << o.name << "+";
    line.hex(s.address - o.bias) << ": not redirected: " << s.reason << " (number " << static_cast<long>(s.nr)
                                 << ")";
    line.write();
  }
}

void work_on(Object* o, int fd, Maps* maps, Phase phase, Workspace* ws) {
  unsigned long begin = now();
  Patcher(o, g.config, phase, ws).run(fd, maps);
  if (log_on(Topic::patch)) log_object(*o, now() - begin);
}

Object* add_object(const Mapping& m, const char* name) {
  Object o{};
  o.start = m.start;
  o.end = m.end;
  o.offset = m.offset;
  o.device = m.device;
  o.inode = m.inode;
  o.prot = m.prot;
  set_name(&o, name);
  g.objects.push(o);
  return &g.objects.back();
}

}  // namespace

void configure(const Config& config) { g.config = config; }

void lock_for_fork() {
  while (__atomic_exchange_n(&g.locked, 1, __ATOMIC_ACQUIRE)) kernel::sys(__NR_sched_yield);
}
void unlock_after_fork() {
  __atomic_store_n(&g.locked, 0, __ATOMIC_RELEASE);  // pairs with the exchange
}

void patch_process(Phase phase) {
  Lock lock;
  g.phase_known = true;
  g.phase = phase;
  Maps maps;
  if (!maps.read()) {
    if (log_on(Topic::patch)) (Line() << "patch: /proc/self/maps cannot be read").write();
    return;
  }
  Workspace ws;
  for (const Mapping& m : maps.all()) {
    if (!(m.prot & kExec) || !(m.prot & kRead) || !m.inode || is_own(m.start, m.end)) continue;
    Object* o = find_object(m.start, m.end);
    if (!o) o = add_object(m, maps.path(m));
    if (!o->inode) o->inode = m.inode, o->device = m.device;  // known so far by a descriptor only
    if (o->complete) continue;
    work_on(o, -1, &maps, phase, &ws);
    if (phase == Phase::all && o->area_count) leave_clean_pages(o->start, o->end);
  }
  ws.release();
  maps.release();
}

namespace {

void forget(uintptr_t start, uintptr_t end) {
  for (size_t i = 0; i < g.objects.size();) {
    Object& o = g.objects[i];
    uintptr_t lo = o.code.lo < o.code.hi ? o.code.lo : o.start,
              hi = o.code.lo < o.code.hi ? o.code.hi : o.end;
    // The dynamic linker unmaps holes of an object whose first segment was mapped over all of it.
    if (hi <= start || end <= lo) {
      ++i;
      continue;
    }
    o.release(start <= lo && hi <= end);
    o = g.objects.back();
    g.objects.pop_back();
  }
}

}  // namespace

void patch_mapping(uintptr_t start, uintptr_t end, int fd, uint64_t file_offset) {
  if (is_own(start, end)) return;
  Lock lock;
  // Protection that comes and goes is no new mapping.
  if (Object* known = find_object(start, end); known && known->jumps_in_place()) return;
  forget(start, end);
  Maps maps;
  Mapping m{start, end, file_offset, 0, 0, 0, kRead | kExec};
  char name[sizeof(Object::name)] = "?";
  if (fd >= 0) {
    char link[40] = "/proc/self/fd/";
    size_t n = 14;
    char digits[12];
    int k = 0;
    for (int v = fd; v || !k; v /= 10) digits[k++] = static_cast<char>('0' + v % 10);
    while (k) link[n++] = digits[--k];
    link[n] = '\0';
    long r = kernel::sys(__NR_readlinkat, -100, link, name, sizeof name - 1);
    if (r > 0) name[r] = '\0';
  } else {
    maps.read();
    const Mapping* found = maps.find(start);
    if (found && found->inode) {
      m = *found;
      m.start = start;
      m.end = end;
      m.offset = found->offset + (start - found->start);
      size_t n = 0;
      for (const char* p = maps.path(*found); p[n] && n < sizeof name - 1; ++n) name[n] = p[n];
      name[n] = '\0';
    }
  }
  if (fd >= 0 || m.inode) {
    Workspace ws;
    work_on(add_object(m, name), fd, &maps, g.phase_known ? g.phase : Phase::all, &ws);
    ws.release();
  }
  maps.release();
}

void forget_mapping(uintptr_t start, uintptr_t end) {
  Lock lock;
  forget(start, end);
}

Totals totals() {
  Totals t{};
  {
    Lock lock;
    for (const Object& o : g.objects) count(o, &t);
  }
  t.nanoseconds = g.nanoseconds;
  return t;
}

void for_each_unpatched(void (*visit)(void* arg, const char* object, uintptr_t offset, long nr,
                                      const char* reason),
                        void* arg) {
  Lock lock;
  for (const Object& o : g.objects)
    for (const Site& s : o.sites)
      if (s.state == State::unpatched) visit(arg, o.name, s.address - o.bias, s.nr, s.reason);
}

bool covers(uintptr_t pc) { return area_covers(pc); }
uintptr_t program_pc(uintptr_t pc) { return area_program_pc(pc); }

}  // namespace upcall::patch
