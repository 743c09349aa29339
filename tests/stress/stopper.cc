// Stops the kernel threads of a program at random instructions, mostly inside the runtime, leaves them there for a while
// and lets them go on. The program must not notice: no lost wake-up, no deadlock, whatever the instruction.
//
//   stopper [--seconds S] [--seed N] [--min-stops N] [--min-functions N] [--verbose] -- upcall run ... -- PROGRAM ARGS
//
// For S seconds, from the program's start. Then nothing is touched any more and the program must end by itself: its status
// is ours, unless fewer stops than asked for were inside the runtime. SIGTERM (the watchdog's) prints where all the
// kernel threads are and lets go of them, so that a debugger can have them.
//
// How a kernel thread comes to a stop:
//   - it is interrupted where it computes (who sleeps in the kernel, seldom: to interrupt a wait is to repeat its last
//     look at what it waits for, which would cure a lost wake-up), or
//   - when it was let go last, it was told to stop at the n-th beginning or end of a system call from there, or
//   - at the entry of some function of the runtime (hardware breakpoints); or it gets a signal, or has just been made.
// From there it is single-stepped: some instructions, or until it is inside the runtime and some more.
//
// What tracing itself would break is mended here: an instruction pushf that is stepped writes the trap flag (see step_done).
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include <algorithm>
#include <map>

#include "runtime_code.h"
#include "stress.h"

namespace {

constexpr int kMostSteps = 2000, kMostAtOnce = 4, kMostSought = 300;
constexpr int64_t kLongHold = 200 * kMs, kMostHold = 20 * kMs;
// A step that takes longer is a system call that blocks, or a sentinel's that does not get its CPU: no longer counted as
// work of ours.
constexpr int64_t kWaitIsLong = 5 * kMs;

struct Settings {
  double seconds = 5;
  uint64_t seed = 1;
  int min_stops = 0, min_functions = 0;
  bool verbose = false;
  char** command = nullptr;
} settings;

enum class Phase { running, interrupting, stepping, held };
const char* const kPhases[] = {"running", "being interrupted", "being stepped", "held"};

struct Tracee {
  Phase phase = Phase::running;
  bool seeking = false;      // stepping until it is inside the runtime
  int steps = 0;             // to go, or to go before seeking is given up
  int calls = -1;            // running: stops at this many ends of system calls from here; -1: at none
  bool breakpoints = false;  // running: some are set
  int signal = 0;            // to be delivered when it goes on
  int64_t until = 0;         // held
  int64_t asked_at = 0;      // interrupting or stepping: since
  uint64_t pushf_at = 0;     // stepping such an instruction
};

struct Counts {
  int64_t stops = 0, inside = 0, steps = 0, seen = 0;
  std::map<std::string, int64_t> functions;
} counts;

pid_t process = 0;
std::map<pid_t, Tracee> tracees;
RuntimeCode code;
Random random_source(1);
bool attacking = true;

// ESRCH is the usual answer for one that has just been killed: its end is reported later.
bool trace(__ptrace_request request, pid_t id, uint64_t address = 0, uint64_t data = 0) {
  return ptrace(request, id, address, data) == 0;
}

uint64_t instruction_pointer(pid_t id) {
  errno = 0;
  return static_cast<uint64_t>(ptrace(PTRACE_PEEKUSER, id, offsetof(user, regs.rip), 0));
}

// From 0 to `most`, small ones as probable as large ones.
int log_uniform(int most) {
  const double unit = static_cast<double>(random_source.next() >> 11) / 9007199254740992.0;
  return static_cast<int>(exp(unit * log(most + 1.0)) - 1);
}

int64_t how_long() {
  if (random_source.one_in(60)) return kLongHold;
  const double unit = static_cast<double>(random_source.below(1000)) / 1000;
  return static_cast<int64_t>(unit * unit * unit * unit * kMostHold);
}

int busy() {
  const int64_t now = now_ns();
  return static_cast<int>(std::count_if(tracees.begin(), tracees.end(), [now](const auto& one) {
    const Tracee& t = one.second;
    return t.phase == Phase::held || (t.phase != Phase::running && now - t.asked_at < kWaitIsLong);
  }));
}

// The debug registers 0 to 3 hold addresses, bits of 7 say which are looked at: for execution, one byte.
bool set_debug_register(pid_t id, int number, uint64_t value) {
  return trace(PTRACE_POKEUSER, id, offsetof(user, u_debugreg) + static_cast<size_t>(number) * sizeof value,
               value);
}

void clear_breakpoints(pid_t id, Tracee& t) {
  if (t.breakpoints) set_debug_register(id, 7, 0);
  t.breakpoints = false;
}

// At one of the doors of the runtime, and at three functions of it, most of which are not called soon.
void set_breakpoints(pid_t id, Tracee& t) {
  if (code.entries().empty()) return;
  const char* const doors[] = {"upcall_entry", "upcall_native_call", "upcall_on_signal",
                               "upcall_blocking_syscall"};
  uint64_t enabled = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t address = i == 0 ? code.entry(doors[random_source.below(4)])
                                    : code.entries()[random_source.next() % code.entries().size()];
    if (set_debug_register(id, i, address)) enabled |= 1u << (2 * i);
  }
  t.breakpoints = enabled != 0 && set_debug_register(id, 7, enabled);
}

void let_go(pid_t id, Tracee& t) {
  const auto signal = static_cast<uint64_t>(t.signal);
  t.signal = 0;
  trace(attacking && t.phase == Phase::running && t.calls >= 0 ? PTRACE_SYSCALL : PTRACE_CONT, id, 0, signal);
}

// It goes on, with or without an appointment for its next stop.
void release(pid_t id, Tracee& t) {
  t.phase = Phase::running;
  t.calls = -1;
  if (attacking) {
    const int appointment = random_source.below(4);
    if (appointment == 0) t.calls = random_source.below(12);
    if (appointment >= 2) set_breakpoints(id, t);
  }
  let_go(id, t);
}

void hold(pid_t id, Tracee& t) {
  const uint64_t rip = instruction_pointer(id);
  if (errno != 0) return;
  ++counts.stops;
  if (code.contains(process, rip)) {
    ++counts.inside;
    ++counts.functions[code.name(rip)];
  }
  const auto held = std::count_if(tracees.begin(), tracees.end(),
                                  [](const auto& one) { return one.second.phase == Phase::held; });
  t.phase = Phase::held;
  // Never all for long.
  const bool last = static_cast<size_t>(held) + 1 >= tracees.size();
  t.until = now_ns() + (last ? 100'000 : how_long());
}

void step(pid_t id, Tracee& t) {
  const uint64_t rip = instruction_pointer(id);
  if (errno != 0) return;
  if (t.seeking && code.contains(process, rip)) {
    t.seeking = false;
    t.steps = log_uniform(random_source.one_in(6) ? kMostSteps : 200);
  }
  if (t.steps == 0 || !attacking) {
    hold(id, t);
    return;
  }
  --t.steps;
  ++counts.steps;
  t.pushf_at = (ptrace(PTRACE_PEEKTEXT, id, rip, 0) & 0xff) == 0x9c ? rip : 0;
  t.asked_at = now_ns();
  const auto signal = static_cast<uint64_t>(t.signal);
  t.signal = 0;
  trace(PTRACE_SINGLESTEP, id, 0, signal);
}

void begin_steps(pid_t id, Tracee& t) {
  t.phase = Phase::stepping;
  t.calls = -1;
  clear_breakpoints(id, t);
  const int plan = random_source.below(6);
  t.seeking = plan >= 2;
  t.steps = plan == 0 ? 0 : t.seeking ? kMostSought : log_uniform(kMostSteps);
  step(id, t);
}

// The word that pushf has written has the trap flag in it that is set for the step; the program must not find it there.
void step_done(pid_t id, Tracee& t) {
  if (t.pushf_at != 0 && instruction_pointer(id) == t.pushf_at + 1) {
    constexpr uint64_t trap_flag = 1 << 8;
    const auto top = static_cast<uint64_t>(ptrace(PTRACE_PEEKUSER, id, offsetof(user, regs.rsp), 0));
    errno = 0;
    const auto flags = static_cast<uint64_t>(ptrace(PTRACE_PEEKDATA, id, top, 0));
    if (errno == 0) trace(PTRACE_POKEDATA, id, top, flags & ~trap_flag);
  }
  step(id, t);
}

int signal_code(pid_t id) {
  siginfo_t info = {};
  trace(PTRACE_GETSIGINFO, id, 0, reinterpret_cast<uint64_t>(&info));
  return info.si_code;
}

// The storms make no such signals: the program's last words.
void show_fault(pid_t id, const Tracee& t) {
  user_regs_struct registers = {};
  siginfo_t info = {};
  trace(PTRACE_GETREGS, id, 0, reinterpret_cast<uint64_t>(&registers));
  trace(PTRACE_GETSIGINFO, id, 0, reinterpret_cast<uint64_t>(&info));
  code.contains(process, registers.rip);
  dprintf(2,
          "kernel thread %d gets signal %d, code %d, address %p, at %#llx %s, rsp %#llx, flags %#llx, %s\n",
          id, t.signal, info.si_code, info.si_addr, registers.rip, code.name(registers.rip).c_str(),
          registers.rsp, registers.eflags, kPhases[static_cast<int>(t.phase)]);
}

// Any stop takes the place of the one that was asked for by an interruption.
void on_stop(pid_t id, Tracee& t, int status) {
  const int event = status >> 16, signal = WSTOPSIG(status);
  const bool interrupted = t.phase == Phase::interrupting;
  const auto pause_or_go_on = [id, &t](bool pause) {
    if (t.phase == Phase::stepping) {
      step(id, t);
    } else if (pause && attacking) {
      begin_steps(id, t);
    } else {
      t.phase = Phase::running;
      let_go(id, t);
    }
  };
  if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {
    trace(PTRACE_LISTEN, id);  // a stop of the whole process
  } else if (event == PTRACE_EVENT_STOP) {
    pause_or_go_on(interrupted || random_source.one_in(2));  // if not interrupted, it has just been made
  } else if (event != 0) {
    if (event == PTRACE_EVENT_EXEC) code.refresh(process);
    pause_or_go_on(interrupted);
  } else if (signal == (SIGTRAP | 0x80)) {
    pause_or_go_on(interrupted || t.calls-- == 0);
  } else if (signal == SIGTRAP && t.phase == Phase::stepping) {
    step_done(id, t);
  } else if (signal == SIGTRAP && signal_code(id) == TRAP_HWBKPT) {
    // Perhaps one that has been taken away since: another stop came first.
    clear_breakpoints(id, t);
    pause_or_go_on(true);
  } else if (signal == SIGTRAP && signal_code(id) == TRAP_BRKPT) {
    // The trap of a step through a system call, after another stop was reported first: one that had been asked for just as
    // a stop for another reason came. A trap flag that the program has got from us would show as TRAP_TRACE.
    pause_or_go_on(interrupted);
  } else {
    // A signal of the program's, or of the runtime.
    t.signal = signal;
    if (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE || signal == SIGTRAP)
      show_fault(id, t);
    pause_or_go_on(interrupted || random_source.one_in(16));
  }
}

char state_of(pid_t id) {
  char line[512] = "";
  const std::string path = "/proc/" + std::to_string(process) + "/task/" + std::to_string(id) + "/stat";
  if (FILE* file = fopen(path.c_str(), "re")) {
    if (fgets(line, sizeof line, file) == nullptr) line[0] = 0;
    fclose(file);
  }
  const char* end = strrchr(line, ')');
  return end != nullptr && end[1] == ' ' ? end[2] : '?';
}

void interrupt_someone() {
  for (int i = 0; i < 8; ++i) {
    auto one = tracees.begin();
    std::advance(one, random_source.below(static_cast<int>(tracees.size())));
    if (one->second.phase != Phase::running) continue;
    if (state_of(one->first) != 'R' && !random_source.one_in(16)) continue;
    one->second.asked_at = now_ns();
    if (trace(PTRACE_INTERRUPT, one->first)) one->second.phase = Phase::interrupting;
    return;
  }
}

void show_functions() {
  std::vector<std::pair<int64_t, std::string>> table;
  for (const auto& [name, hits] : counts.functions) table.emplace_back(hits, name);
  std::sort(table.rbegin(), table.rend());
  for (const auto& [hits, name] : table) printf("%8lld  %s\n", static_cast<long long>(hits), name.c_str());
}

// Waits for a stop, not for long. How the kernel thread goes on from there: with the program's own signal, if any.
bool stops_within(pid_t id, int64_t ns, uint64_t* signal) {
  int status = 0;
  for (const int64_t end = now_ns() + ns; waitpid(id, &status, __WALL | WNOHANG) == 0; nap(kMs / 2))
    if (now_ns() > end) return false;
  const int number = WIFSTOPPED(status) ? WSTOPSIG(status) & 0x7f : SIGTRAP;
  *signal = status >> 16 == 0 && number != SIGTRAP ? static_cast<uint64_t>(number) : 0;
  return WIFSTOPPED(status);
}

// For the watchdog. Interrupting a wait may cure it: by now it is known that the program hangs.
void diagnose_and_detach() {
  attacking = false;
  dprintf(2, "the program hangs; its kernel threads:\n");
  for (auto& [id, t] : tracees) {
    const char state = state_of(id);
    uint64_t signal = 0;
    trace(PTRACE_INTERRUPT, id);
    stops_within(id, kSecond, &signal);
    user_regs_struct registers = {};
    if (!trace(PTRACE_GETREGS, id, 0, reinterpret_cast<uint64_t>(&registers))) continue;
    code.contains(process, registers.rip);
    dprintf(2, "  %d: state %c, last %s, at %#llx %s, system call %lld, rsp %#llx\n", id, state,
            kPhases[static_cast<int>(t.phase)], registers.rip, code.name(registers.rip).c_str(),
            static_cast<long long>(registers.orig_rax), registers.rsp);
    clear_breakpoints(id, t);
    // A step that the interruption has ended has its trap still to come, and nobody else would take that.
    trace(PTRACE_CONT, id, 0, signal);
    while (stops_within(id, 5 * kMs, &signal)) trace(PTRACE_CONT, id, 0, signal);
    trace(PTRACE_INTERRUPT, id);
    stops_within(id, kSecond, &signal);
    trace(PTRACE_DETACH, id, 0, signal);
  }
  tracees.clear();
  dprintf(2, "no longer traced\n");
}

// The program stops here until it is traced, and becomes what it is to be.
pid_t start_program() {
  int go[2];
  CHECK_EQ(pipe2(go, O_CLOEXEC), 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    char byte;
    if (read(go[0], &byte, 1) != 1) _exit(127);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execvp(settings.command[0], settings.command);
    _exit(127);
  }
  const uint64_t options =
      PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (!trace(PTRACE_SEIZE, child, 0, options)) {
    kill(child, SIGKILL);
    skip("tracing is not allowed here");
  }
  CHECK_EQ(write(go[1], "g", 1), 1);
  close(go[0]);
  close(go[1]);
  tracees[child];
  return child;
}

enum class Reports { none, some, ended };

Reports take_report(pid_t of, int* status) {
  const pid_t id = waitpid(of, status, __WALL | WNOHANG);
  if (id == 0 || (id < 0 && of > 0)) return Reports::none;
  if (id < 0) FAIL("waitpid: %s", strerror(errno));
  if (WIFSTOPPED(*status)) {
    const auto [at, fresh] = tracees.try_emplace(id);
    counts.seen += fresh;
    on_stop(id, at->second, *status);
    return Reports::some;
  }
  tracees.erase(id);
  return id == process ? Reports::ended : Reports::some;
}

// What is to be said now, each in turn. The kernel, asked for anybody, would begin with the eldest again and again: a
// sentinel that is stepped through its loop always has something to say.
Reports take_reports(int* status) {
  Reports reported = take_report(-1, status);
  if (reported != Reports::some) return reported;
  std::vector<pid_t> all;
  for (const auto& one : tracees) all.push_back(one.first);
  for (pid_t id : all)
    if (take_report(id, status) == Reports::ended) return Reports::ended;
  return Reports::some;
}

// Answers when the next is due.
int64_t let_due_go_on(int64_t now) {
  int64_t next = now + 10 * kMs;
  for (auto& [id, t] : tracees) {
    if (t.phase != Phase::held) continue;
    if (t.until <= now || !attacking)
      release(id, t);
    else
      next = std::min(next, t.until);
  }
  return next;
}

int supervise() {
  const sigset_t reports = signal_set({SIGCHLD, SIGTERM});
  CHECK_EQ(sigprocmask(SIG_BLOCK, &reports, nullptr), 0);
  random_source = Random(settings.seed, 77);
  process = start_program();
  // Sometimes the program's last moments are disturbed as well, sometimes not.
  const auto end = now_ns() + static_cast<int64_t>(settings.seconds * 1e9) + random_source.below(1000) * kMs;
  int64_t interrupt_at = now_ns();
  for (int status = 0;;) {
    const Reports reported = take_reports(&status);
    if (reported == Reports::ended) return status;
    const int64_t now = now_ns();
    attacking = attacking && now < end;
    int64_t next = let_due_go_on(now);
    if (attacking) {
      if (now >= interrupt_at) {
        if (busy() < kMostAtOnce && !tracees.empty()) interrupt_someone();
        interrupt_at = now + random_source.below(2000) * 1000;
      }
      next = std::min({next, interrupt_at, end});
    }
    if (reported == Reports::some) next = 0;
    const timespec patience = to_timespec(std::max<int64_t>(next - now_ns(), 0));
    if (sigtimedwait(&reports, nullptr, &patience) == SIGTERM) diagnose_and_detach();
    if (tracees.empty()) pause();  // the watchdog ends us
  }
}

void read_settings(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--") {
      settings.command = arguments + i + 1;
      break;
    }
    if (name == "--verbose") {
      settings.verbose = true;
      continue;
    }
    if (++i == count) FAIL("%s needs a value", name.c_str());
    if (name == "--seconds")
      settings.seconds = atof(arguments[i]);
    else if (name == "--seed")
      settings.seed = strtoull(arguments[i], nullptr, 10);
    else if (name == "--min-stops")
      settings.min_stops = atoi(arguments[i]);
    else if (name == "--min-functions")
      settings.min_functions = atoi(arguments[i]);
    else
      FAIL("unknown option %s", name.c_str());
  }
  if (settings.command == nullptr || settings.command[0] == nullptr)
    FAIL("no program: stopper ... -- PROGRAM");
}

}  // namespace

int main(int count, char** arguments) {
  read_settings(count, arguments);
  const int status = supervise();
  if (settings.verbose) show_functions();
  const auto functions = static_cast<long long>(counts.functions.size());
  printf("%lld stops, %lld inside the runtime, in %lld of its functions; %lld steps, %lld kernel threads\n",
         static_cast<long long>(counts.stops), static_cast<long long>(counts.inside), functions,
         static_cast<long long>(counts.steps), static_cast<long long>(counts.seen) + 1);
  fflush(stdout);
  if (WIFSIGNALED(status)) FAIL("the program was ended by signal %d", WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
  if (counts.inside < settings.min_stops)
    FAIL("only %lld stops were inside the runtime", (long long)counts.inside);
  if (functions < settings.min_functions) FAIL("only %lld functions were hit", functions);
  return 0;
}
