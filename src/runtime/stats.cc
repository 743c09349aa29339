// The report at the end of a process: text for people, JSON for machines. Written with raw calls from wherever the
// process ends.
#include <fcntl.h>

#include "base/log.h"
#include "linux/linux.h"
#include "linux/patch/patch.h"
#include "runtime/config.h"

namespace upcall::linux_abi {

namespace {

using activation::g_runtime;

atomic<uint32_t> g_reported{0};

// Buffered output of any length to one descriptor.
class Out {
 public:
  explicit Out(int fd) noexcept : fd_(fd) {}
  ~Out() { flush(); }
  Out& operator<<(const char* s) noexcept {
    for (; s && *s; ++s) put(*s);
    return *this;
  }
  Out& operator<<(uint64_t v) noexcept {
    char digits[20];
    int n = 0;
    do digits[n++] = static_cast<char>('0' + v % 10);
    while (v /= 10);
    while (n) put(digits[--n]);
    return *this;
  }
  Out& quoted(const char* s) noexcept {
    put('"');
    for (; s && *s; ++s) {
      if (*s == '"' || *s == '\\') put('\\');
      if (static_cast<unsigned char>(*s) >= 32) put(*s);
    }
    put('"');
    return *this;
  }

 private:
  void put(char c) noexcept {
    buffer_[size_++] = c;
    if (size_ == sizeof buffer_) flush();
  }
  void flush() noexcept {
    for (size_t done = 0; done < size_;) {
      long r = kernel::sys(__NR_write, fd_, buffer_ + done, size_ - done);
      if (r <= 0) break;
      done += static_cast<size_t>(r);
    }
    size_ = 0;
  }
  int fd_;
  size_t size_ = 0;
  char buffer_[2048];
};

ProcessorCounters sum() noexcept {
  ProcessorCounters total;
  if (!g_runtime.processor) return total;
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    const ProcessorCounters& c = g_runtime.processor[i].counters;
#define UPCALL_ADD(name, text) total.name += c.name;
    UPCALL_PROCESSOR_COUNTERS(UPCALL_ADD)
#undef UPCALL_ADD
  }
  return total;
}

// Calls row(name, value, explanation) for every figure.
template <typename F>
void each_figure(F row) noexcept {
  ProcessorCounters p = sum();
  patch::Totals s = patch::totals();
  row("processors", g_runtime.processors, "processors");
  row("threads_peak", g_counters.threads_peak.load(relaxed),
      "most threads alive at once, the main one included");
  row("kernel_threads_peak", g_counters.kernel_threads_peak.load(relaxed), "most kernel threads at once");
#define UPCALL_ROW(name, text) row(#name, g_counters.name.load(relaxed), text);
  UPCALL_GLOBAL_COUNTERS(UPCALL_ROW)
#undef UPCALL_ROW
#define UPCALL_ROW(name, text) row(#name, p.name, text);
  UPCALL_PROCESSOR_COUNTERS(UPCALL_ROW)
#undef UPCALL_ROW
  row("sites_candidates", s.candidates, "byte pairs that could be system-call instructions");
  row("sites_patched", s.patched, "system-call sites redirected");
  row("sites_plain", s.left_plain, "sites left as they are: their call never blocks and passes through");
  row("sites_unpatched", s.unpatched, "sites that could not be redirected");
  row("patch_microseconds", s.nanoseconds / 1000, "time spent on redirecting");
}

void write_text() noexcept {
  Out out(2);
  out << "upcall: statistics of process " << static_cast<uint64_t>(g_runtime.pid) << "\n";
  each_figure([&](const char* name, uint64_t value, const char* text) {
    int width = 1;
    for (uint64_t v = value; v >= 10; v /= 10) ++width;
    for (int i = width; i < 14; ++i) out << " ";
    out << value << "  " << name << ": " << text << "\n";
  });
}

void write_json(const char* pattern) noexcept {
  char path[4096];
  size_t n = 0;
  for (const char* s = pattern; *s && n < sizeof path - 24; ++s) {
    if (s[0] == '%' && s[1] == 'p') {
      char digits[12];
      int d = 0;
      for (auto v = static_cast<uint32_t>(g_runtime.pid); v || !d; v /= 10)
        digits[d++] = static_cast<char>('0' + v % 10);
      while (d) path[n++] = digits[--d];
      ++s;
    } else {
      path[n++] = *s;
    }
  }
  path[n] = 0;
  long fd =
      kernel::sys(__NR_open, static_cast<const char*>(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (kernel::is_error(fd)) {
    (Line() << "cannot write statistics to " << static_cast<const char*>(path) << ", error " << -fd).write();
    return;
  }
  {
    Out out(static_cast<int>(fd));
    char exe[1024] = {};
    kernel::sys(__NR_readlink, "/proc/self/exe", static_cast<char*>(exe), sizeof exe - 1);
    out << "{\"pid\": " << static_cast<uint64_t>(g_runtime.pid) << ", \"program\": ";
    out.quoted(exe);
    each_figure(
        [&](const char* name, uint64_t value, const char*) { out << ",\n \"" << name << "\": " << value; });
    out << ",\n \"unpatched\": [";
    struct State {
      Out* out;
      bool first;
    } state = {&out, true};
    patch::for_each_unpatched(
        [](void* arg, const char* object, uintptr_t offset, long nr, const char* reason) {
          auto* s = static_cast<State*>(arg);
          *s->out << (s->first ? "\n  " : ",\n  ") << "{\"object\": ";
          s->out->quoted(object);
          *s->out << ", \"offset\": " << static_cast<uint64_t>(offset) << ", \"nr\": ";
          if (nr < 0)
            *s->out << "-1";
          else
            *s->out << static_cast<uint64_t>(nr);
          *s->out << ", \"reason\": ";
          s->out->quoted(reason);
          *s->out << "}";
          s->first = false;
        },
        &state);
    out << "]}\n";
  }
  kernel::sys(__NR_close, fd);
}

}  // namespace

namespace {

// One file for one process: children do not overwrite it, unless each has its own (%p).
bool may_write_file() noexcept {
  const char* pattern = runtime::g_config.stats_file;
  if (!*pattern) return false;
  for (const char* s = pattern; *s; ++s)
    if (s[0] == '%' && s[1] == 'p') return true;
  return static_cast<uint64_t>(g_runtime.pid) == runtime::g_config.stats_pid;
}

}  // namespace

void reset_counters() noexcept {
  g_reported.store(0, relaxed);
  if (g_runtime.processor)
    for (uint32_t i = 0; i < g_runtime.processors; ++i) g_runtime.processor[i].counters = {};
#define UPCALL_CLEAR(name, text) g_counters.name.store(0, relaxed);
  UPCALL_GLOBAL_COUNTERS(UPCALL_CLEAR)
#undef UPCALL_CLEAR
  g_counters.threads_peak.store(1, relaxed);
  g_counters.kernel_threads_live.store(1, relaxed);
  g_counters.kernel_threads_peak.store(1, relaxed);
}

void report_at_exit() noexcept {
  if (!runtime::g_config.stats && !*runtime::g_config.stats_file) return;
  if (g_reported.exchange(1, relaxed)) return;
  if (!g_runtime.pid) g_runtime.pid = static_cast<int32_t>(kernel::sys(__NR_getpid));
  if (runtime::g_config.stats) write_text();
  if (may_write_file()) write_json(runtime::g_config.stats_file);
}

}  // namespace upcall::linux_abi
