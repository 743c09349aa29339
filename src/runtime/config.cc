#include "runtime/config.h"

#include "base/check.h"
#include "base/log.h"

namespace upcall::runtime {

Config g_config;

namespace {

// The value if `entry` is NAME=value.
const char* value_of(const char* entry, const char* name) noexcept {
  while (*name && *entry == *name) ++entry, ++name;
  return !*name && *entry == '=' ? entry + 1 : nullptr;
}

[[noreturn]] void reject(const char* name, const char* value, const char* accepted) noexcept {
  (Line() << name << "=" << value << ": " << accepted).write();
  fatal_exit(2, "the environment is not understood; nothing was run");
}

bool starts_with(const char* s, const char* word, const char** rest) noexcept {
  while (*word && *s == *word) ++s, ++word;
  *rest = s;
  return !*word;
}

bool parse_number(const char* s, uint64_t* out, const char** rest) noexcept {
  if (*s < '0' || *s > '9') return false;
  uint64_t v = 0;
  for (; *s >= '0' && *s <= '9'; ++s) {
    v = v * 10 + static_cast<uint64_t>(*s - '0');
    if (v > 1'000'000'000'000u) return false;
  }
  *out = v;
  *rest = s;
  return true;
}

void parse_quantum(const char* value) noexcept {
  constexpr const char* accepted =
      "a time such as 10ms, 100us or 0 (no time slices) is expected, from 50us to 10s";
  uint64_t v, unit = 0;
  const char* rest;
  if (!parse_number(value, &v, &rest)) reject("UPCALL_QUANTUM", value, accepted);
  const char* end;
  if (starts_with(rest, "ms", &end) && !*end) unit = 1'000'000;
  if (starts_with(rest, "us", &end) && !*end) unit = 1'000;
  if (starts_with(rest, "s", &end) && !*end) unit = 1'000'000'000;
  if (!*rest && v == 0) unit = 1;
  uint64_t ns = v <= 10'000'000'000u ? v * unit : ~0ull;
  if (unit && v > 10'000'000'000u / unit) ns = ~0ull;
  if (!unit || (ns && (ns < 50'000 || ns > 10'000'000'000u))) reject("UPCALL_QUANTUM", value, accepted);
  g_config.quantum_ns = ns;
}

void parse_events(const char* value) noexcept {
  using activation::Events;
  constexpr struct {
    const char* name;
    Events events;
  } sources[] = {{"sentinel", Events::sentinel}, {"bpf", Events::bpf}, {"monitor", Events::monitor}};
  const char* end;
  for (auto& s : sources) {
    if (!starts_with(value, s.name, &end) || *end) continue;
    g_config.events = s.events;
    return;
  }
  reject("UPCALL_EVENTS", value, "sentinel, bpf or monitor is expected");
}

bool parse_switch(const char* name, const char* value) noexcept {
  const char* end;
  if (starts_with(value, "on", &end) && !*end) return true;
  if (starts_with(value, "off", &end) && !*end) return false;
  reject(name, value, "on or off is expected");
}

void parse_topics(const char* value) noexcept {
  constexpr struct {
    const char* name;
    Topic topic;
  } topics[] = {{"patch", Topic::patch},
                {"syscall", Topic::syscall},
                {"sched", Topic::sched},
                {"signal", Topic::signal},
                {"start", Topic::start}};
  const char* s = value;
  while (*s) {
    bool known = false;
    const char* rest = s;
    for (auto& t : topics)
      if (starts_with(s, t.name, &rest) && (!*rest || *rest == ',')) {
        g_log_topics |= static_cast<uint32_t>(t.topic);
        known = true;
        break;
      }
    if (!known)
      reject("UPCALL_LOG", value, "topics are patch, syscall, sched, signal and start, separated by commas");
    s = *rest ? rest + 1 : rest;
  }
}

// setproctitle and its like write over the strings that the program was started with.
template <size_t size>
void copy_path(const char* name, const char* value, char (&to)[size]) noexcept {
  size_t n = 0;
  while (n < size && value[n]) to[n] = value[n], ++n;
  if (n == size) reject(name, value, "shorter than 4096 characters is expected");
  to[n] = 0;
}

}  // namespace

void read_environment(char** env) noexcept {
  for (; env && *env; ++env) {
    const char* v;
    if ((v = value_of(*env, "UPCALL_PROCESSORS")) && *v) {
      uint64_t n;
      const char* rest;
      if (!parse_number(v, &n, &rest) || *rest || n < 1 || n > 256)
        reject("UPCALL_PROCESSORS", v, "a number from 1 to 256 is expected");
      g_config.processors = static_cast<uint32_t>(n);
    } else if ((v = value_of(*env, "UPCALL_QUANTUM")) && *v) {
      parse_quantum(v);
    } else if ((v = value_of(*env, "UPCALL_EVENTS")) && *v) {
      parse_events(v);
    } else if ((v = value_of(*env, "UPCALL_DESCRIPTORS")) && *v) {
      const char* rest;
      g_config.pipe_events = starts_with(v, "events", &rest) && !*rest;
      g_config.descriptor_events = g_config.pipe_events || (starts_with(v, "sockets", &rest) && !*rest);
      if (!g_config.descriptor_events && !(starts_with(v, "calls", &rest) && !*rest))
        reject("UPCALL_DESCRIPTORS", v, "sockets, events or calls is expected");
    } else if ((v = value_of(*env, "UPCALL_SHARE")) && *v) {
      const char* rest;
      g_config.share_threads = starts_with(v, "threads", &rest) && !*rest;
      if (!g_config.share_threads && !(starts_with(v, "process", &rest) && !*rest))
        reject("UPCALL_SHARE", v, "process or threads is expected");
    } else if ((v = value_of(*env, "UPCALL_ACTIVATIONS")) && *v) {
      uint64_t n;
      const char* rest;
      if (!parse_number(v, &n, &rest) || *rest || n < 1 || n > 1u << 18)
        reject("UPCALL_ACTIVATIONS", v, "a number from 1 to 262144 is expected");
      g_config.activations = static_cast<uint32_t>(n);
    } else if ((v = value_of(*env, "UPCALL_SYMBOLS")) && *v) {
      g_config.symbols = parse_switch("UPCALL_SYMBOLS", v);
    } else if ((v = value_of(*env, "UPCALL_FOLLOW")) && *v) {
      if ((v[0] != '0' && v[0] != '1') || v[1]) reject("UPCALL_FOLLOW", v, "0 or 1 is expected");
      g_config.follow = *v == '1';
    } else if ((v = value_of(*env, "UPCALL_STATS")) && *v) {
      g_config.stats = *v != '0';
    } else if ((v = value_of(*env, "UPCALL_STATS_FILE")) && *v) {
      copy_path("UPCALL_STATS_FILE", v, g_config.stats_file);
    } else if ((v = value_of(*env, "UPCALL_STATS_PID")) && *v) {
      const char* rest;
      parse_number(v, &g_config.stats_pid, &rest);
    } else if ((v = value_of(*env, "UPCALL_LOG")) && *v) {
      parse_topics(v);
    }
  }
}

}  // namespace upcall::runtime
