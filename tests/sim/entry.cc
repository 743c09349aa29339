// What arch/x86_64/entry.S does, with steps of the machine between its instructions: the way into the runtime and out of
// it, the frames of the reserved signal; and its functions that touch the program's memory.
#include "machine.h"
#include "program.h"

extern "C" {
upcall::sched::Thread* upcall_take_back(upcall::sched::Thread* t,
                                        upcall::sched::Thread* (*handler)(upcall::sched::Thread*)) noexcept;
upcall::sched::Thread* upcall_before_resume(upcall::sched::Thread* t) noexcept;
}

namespace upcall::sim {

namespace {

using activation::KernelUcontext;

Activation* here() noexcept { return reinterpret_cast<Activation*>(g.current->gs); }

constexpr uint64_t reserved = activation::bit(activation::preempt_signal);
bool reserved_signal_blocked() noexcept { return g.current->blocked_signals & reserved; }

[[noreturn]] void resume(Thread* t) noexcept {
  Activation* a = here();
  SIM_CHECK(t && a->current == t, "resumes a thread that is not the current one");
  uint32_t attention = t->attention.load(relaxed), resched = a->resched.load(relaxed);
  if (t->kind | t->fpu | attention | resched) {
    if (attention | resched) {
      t = upcall_before_resume(t);
      SIM_CHECK(t && a->current == t, "resumes a thread that is not the current one");
    }
    if (t->fpu != FPU_LIVE) upcall_load_fpu(t);
  }
  User* u = user_of(t);
  if (t->kind != CONTEXT_REGISTERS) {
    t->kind = CONTEXT_REGISTERS;
    auto* uc = static_cast<KernelUcontext*>(t->signal_frame);
    a->in_runtime.store(0, relaxed);
    step("sigreturn");
    SIM_CHECK(uc->stack.sp == a->altstack.sp && uc->sigmask == activation::activation_mask,
              "a frame is not prepared for its activation");
    g.current->blocked_signals = uc->sigmask;
    g.current->vectors = uc->reserved[7];
    enter_user(u);
  }
  SIM_CHECK(!reserved_signal_blocked(), "thread %d goes on with the reserved signal blocked", u->index);
  u->result = static_cast<long>(t->rax);
  bool native = t->native;
  a->in_runtime.store(0, relaxed);
  step("out of the runtime");
  SIM_CHECK(native || !u->entered || g.current->vectors == u->vectors,
            "thread %d goes on with vectors of %lu", u->index,
            static_cast<unsigned long>(g.current->vectors));
  enter_user(u);
}

// On the activation's stack.
void entered() noexcept {
  Activation* a = here();
  Thread* t = a->current;
  auto* handler = g.current->handler;
  if (a->lost.load(relaxed))
    resume(upcall_take_back(t, handler));
  else
    resume(handler(t));
}

void fill_frame(KernelUcontext* uc, uint64_t rip) noexcept {
  *uc = {};
  uc->rip = rip;
  uc->reserved[7] = g.current->vectors;
}

constexpr uint64_t program_text = 0x1000;

// On the activation's stack: the thread was stopped in the program.
void interrupted_program() noexcept {
  User* u = g.current->user;
  g.current->user = nullptr;
  KernelUcontext uc;
  fill_frame(&uc, program_text);
  activation::on_preempt_signal(&uc);
  g.current->blocked_signals &= ~reserved;
  SIM_CHECK(here()->current && user_of(here()->current) == u, "a signal handler returns to another thread");
  enter_user(u);
}

void leave_user(KernelThread* k, User* u) noexcept {
  SIM_CHECK(u->on == k, "thread %d leaves a kernel thread that does not run it", u->index);
  u->on = nullptr;
  k->place = Place::library;
}

}  // namespace

void enter_user(User* u) noexcept {
  KernelThread* k = g.current;
  SIM_CHECK(!u->on, "thread %d runs twice: on %d and %d", u->index, u->on->index, k->index);
  SIM_CHECK(!u->ended, "thread %d runs after its end", u->index);
  SIM_CHECK(k->fs == u->fs, "thread %d runs with the FS base of another one", u->index);
  u->on = k;
  k->user = u;
  k->place = Place::program;
  record("thread runs", nullptr, static_cast<uint64_t>(u->index));
  sim_load(u->sp);
}

long enter(Thread* (*handler)(Thread*), long nr, const long args[6], bool native) noexcept {
  step("into the runtime", static_cast<uint64_t>(nr));
  KernelThread* k = g.current;
  User* u = k->user;
  Activation* a = here();
  Thread* t = a->current;
  SIM_CHECK(t && t->fs == u->fs, "thread %d enters as another one", u->index);
  leave_user(k, u);
  k->user = nullptr;
  k->handler = handler;
  if (!native) k->vectors = u->vectors;
  u->entered = true;
  store_at_once(&a->in_runtime, 1, sizeof a->in_runtime, false);
  t->nr = nr;
  t->native = native;
  t->rdi = static_cast<uint64_t>(args[0]), t->rsi = static_cast<uint64_t>(args[1]);
  t->rdx = static_cast<uint64_t>(args[2]), t->r10 = static_cast<uint64_t>(args[3]);
  t->r8 = static_cast<uint64_t>(args[4]), t->r9 = static_cast<uint64_t>(args[5]);
  sim_call_on(&u->sp, a->stack_top, entered);
  return u->result;
}

void run_signal_handler(KernelThread* k) noexcept {
  record("signal", nullptr, 0);
  k->blocked_signals |= reserved;
  if (k->place == Place::program) {
    User* u = k->user;
    leave_user(k, u);
    sim_call_on(&u->sp, here()->stack_top, interrupted_program);
    return;
  }
  KernelUcontext uc;
  auto begin = reinterpret_cast<uint64_t>(upcall_blocking_begin);
  Place place = k->place;
  k->place = Place::library;
  fill_frame(&uc, place == Place::before_call ? begin : reinterpret_cast<uint64_t>(&run_signal_handler));
  activation::on_preempt_signal(&uc);
  SIM_CHECK(g.current == k, "a signal inside the runtime does not return");
  k->blocked_signals &= ~reserved;
  k->place = place;
  if (uc.rip == reinterpret_cast<uint64_t>(upcall_blocking_interrupted)) k->call_cancelled = true;
}

}  // namespace upcall::sim

using upcall::sched::Thread;
using namespace upcall::sim;  // NOLINT

extern "C" {

long upcall_native_call(Thread* (*handler)(Thread*), uint64_t a, uint64_t b, uint64_t c) noexcept {
  long args[6] = {static_cast<long>(a), static_cast<long>(b), static_cast<long>(c)};
  return enter(handler, -1, args, true);
}
long upcall_native_call_here(Thread* (*handler)(Thread*), uint64_t a, uint64_t b, uint64_t c) noexcept {
  return upcall_native_call(handler, a, b, c);
}
Thread* upcall_current_thread() noexcept { return reinterpret_cast<Activation*>(g.current->gs)->current; }

void upcall_resume(Thread* t) { resume(t); }

// Vector registers are one number, that of the thread whose values they are.
void upcall_save_vectors(Thread* t) {
  user_of(t)->saved_vectors = g.current->vectors;
  t->fpu = FPU_VECTORS;
}
void upcall_load_fpu(Thread* t) {
  if (t->fpu & FPU_VECTORS) g.current->vectors = user_of(t)->saved_vectors;
  t->fpu = FPU_LIVE;
}
void upcall_save_control(Thread*) {}
void upcall_copy_control(Thread*) {}
void upcall_reset_control() {}

int upcall_load_user32(const uint32_t* address, uint32_t* value) {
  *value = static_cast<uint32_t>(load(address, sizeof *value));
  return 0;
}
int upcall_store_user32(uint32_t* address, uint32_t value) {
  store(address, value, sizeof value, true);
  return 0;
}
int upcall_load_user64(const uint64_t* address, uint64_t* value) {
  *value = load(address, sizeof *value);
  return 0;
}
int upcall_add_user64(uint64_t* address, uint64_t value) {
  store(address, load(address, sizeof value) + value, sizeof value, false);
  return 0;
}
int upcall_cas_user32(uint32_t* address, uint32_t* expected, uint32_t desired) {
  before_locked(address);
  if (*address != *expected) {
    *expected = *address;
    return 0;
  }
  *address = desired;
  return 1;
}
int upcall_copy_user(void* to, const void* from, size_t bytes) {
  auto* d = static_cast<char*>(to);
  auto* s = static_cast<const char*>(from);
  while (bytes) {
    uint32_t n = bytes >= 8 ? 8 : bytes >= 4 ? 4 : 1;
    uint64_t v = 0;
    if (is_program_memory(s))
      v = load(s, n);
    else
      __builtin_memcpy(&v, s, n);
    if (is_program_memory(d))
      store(d, v, n, true);  // the program may read it as it reads its variables
    else
      __builtin_memcpy(d, &v, n);
    d += n, s += n, bytes -= n;
  }
  return 0;
}

}  // extern "C"
