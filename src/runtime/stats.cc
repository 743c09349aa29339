// The report at the end of a process: text for people, JSON for machines. Written with raw calls from wherever the
// process ends.
#include <fcntl.h>

#include "base/log.h"
#include "linux/linux.h"
#include "linux/patch/patch.h"
#include "runtime/config.h"
#include "runtime/out.h"

namespace upcall::linux_abi {

namespace {

using activation::g_runtime;
using activation::Histogram;
using activation::Upcall;
using runtime::Out;

atomic<uint32_t> g_reported{0};

ProcessorCounters sum() noexcept {
  ProcessorCounters total;
  if (!g_runtime.processor) return total;
  for (uint32_t i = 0; i < g_runtime.processors; ++i) {
    const ProcessorCounters& c = g_runtime.processor[i].counters;
#define UPCALL_ADD(name, text) total.name += c.name;
    UPCALL_PROCESSOR_COUNTERS(UPCALL_ADD)
  }
  for (const activation::Processor* own = activation::first_bound_processor(); own; own = own->next_bound) {
    const ProcessorCounters& c = own->counters;
    UPCALL_PROCESSOR_COUNTERS(UPCALL_ADD)
#undef UPCALL_ADD
  }
  return total;
}

Histogram take_over_latency() noexcept {
  Histogram total;
  for (uint32_t i = 0; g_runtime.processor && i < g_runtime.processors; ++i)
    for (uint32_t b = 0; b < Histogram::buckets; ++b)
      total.count[b] += g_runtime.processor[i].take_over_latency.count[b];
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
  row("upcalls_add_processor", activation::upcalls(Upcall::add_processor),
      "an activation began to run a processor that had none");
  row("upcalls_processor_preempted", activation::upcalls(Upcall::processor_preempted),
      "a thread was stopped, because its time slice was over or one went first");
  row("upcalls_activation_blocked", activation::upcalls(Upcall::activation_blocked),
      "another activation took over a processor whose owner was in the kernel");
  row("upcalls_activation_unblocked", activation::upcalls(Upcall::activation_unblocked),
      "one that had lost its processor so came back");
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

// Three or four digits.
Out& duration(Out& out, uint64_t ns) noexcept {
  constexpr const char* unit[] = {" us", " ms", " s"};
  if (ns < 1000) return out << ns << " ns";
  uint32_t u = 0;
  for (; ns >= 1'000'000 && u < 2; ++u) ns /= 1000;
  uint64_t tenths = (ns + 50) / 100;
  return out << tenths / 10 << "." << tenths % 10 << unit[u];
}

// UPCALL_LOG=sched.
void write_events() noexcept {
  Out out(2);
  uint64_t last = activation::last_event();
  uint64_t first = last < activation::ring_events ? 1 : last - activation::ring_events + 1;
  if (!last) return;
  out << "upcall: upcalls of process " << static_cast<uint64_t>(g_runtime.pid);
  if (first > 1) out << ": the last " << uint64_t{activation::ring_events} << " of " << last;
  out << "\n";
  activation::Event e;
  for (uint64_t n = first; n <= last; ++n) {
    if (!activation::read_event(n, &e)) continue;
    uint64_t t = e.time - activation::events_began();
    out << "upcall: event " << e.sequence << " at " << t / 1'000'000'000 << ".";
    out.number(t % 1'000'000'000, 9, '0')
        << " s: " << activation::upcall_names[static_cast<uint32_t>(e.kind)] << ": processor "
        << uint64_t{e.processor} << ", activation " << uint64_t{e.activation};
    if (e.thread) out << ", thread " << static_cast<uint64_t>(e.thread);
    out << "\n";
  }
}

void write_text() noexcept {
  Out out(2);
  out << "upcall: statistics of process " << static_cast<uint64_t>(g_runtime.pid) << "\n";
  each_figure([&](const char* name, uint64_t value, const char* text) {
    out.number(value, 14, ' ') << "  " << name << ": " << text << "\n";
  });
  each_bound_reason(
      [](void* to, const char* name, uint32_t times) {
        static_cast<Out*>(to)->number(times, 14, ' ') << "  bound by " << name << "\n";
      },
      &out);
  Histogram h = take_over_latency();
  bool any = false;
  for (uint32_t b = 0; b < Histogram::buckets; ++b) {
    if (!h.count[b]) continue;
    if (!any)
      out << "upcall: take-over latency: from blocking with threads ready to the choice of the next one\n";
    any = true;
    out.number(h.count[b], 14, ' ') << "  ";
    duration(out, b ? 1ull << b : 0) << (b + 1 == Histogram::buckets ? " or more" : " to ");
    if (b + 1 < Histogram::buckets) duration(out, 2ull << b);
    out << "\n";
  }
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
    struct Reasons {
      Out* out;
      const char* separator;
    } reasons = {&out, ""};
    out << ",\n \"bound_reasons\": {";
    each_bound_reason(
        [](void* to, const char* name, uint32_t times) {
          auto* r = static_cast<Reasons*>(to);
          *r->out << r->separator;
          r->out->quoted(name);
          *r->out << ": " << uint64_t{times};
          r->separator = ", ";
        },
        &reasons);
    out << "}";
    out << ",\n \"take_over_latency_ns\": [";
    Histogram h = take_over_latency();
    const char* separator = "\n  ";
    for (uint32_t b = 0; b < Histogram::buckets; ++b) {
      if (!h.count[b]) continue;
      out << separator << "{\"from\": " << (b ? 1ull << b : 0) << ", \"below\": ";
      if (b + 1 < Histogram::buckets)
        out << (2ull << b);
      else
        out << "null";
      out << ", \"count\": " << h.count[b] << "}";
      separator = ",\n  ";
    }
    out << "],\n \"unpatched\": [";
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
    for (uint32_t i = 0; i < g_runtime.processors; ++i) {
      g_runtime.processor[i].counters = {};
      g_runtime.processor[i].take_over_latency = {};
    }
  activation::reset_events();
  forget_bound_reasons();
#define UPCALL_CLEAR(name, text) g_counters.name.store(0, relaxed);
  UPCALL_GLOBAL_COUNTERS(UPCALL_CLEAR)
#undef UPCALL_CLEAR
  g_counters.threads_peak.store(1, relaxed);
  g_counters.kernel_threads_live.store(1, relaxed);
  g_counters.kernel_threads_peak.store(1, relaxed);
}

void report_at_exit() noexcept {
  if (!runtime::g_config.stats && !*runtime::g_config.stats_file && !log_on(Topic::sched)) return;
  if (g_reported.exchange(1, relaxed)) return;
  if (!g_runtime.started) g_runtime.pid = static_cast<int32_t>(kernel::sys(__NR_getpid));
  if (log_on(Topic::sched)) write_events();
  if (runtime::g_config.stats) write_text();
  if (may_write_file()) write_json(runtime::g_config.stats_file);
}

}  // namespace upcall::linux_abi
