// fcntl: who gets SIGIO. The kernel cannot signal a virtual id, so a file that is to signal one thread (F_SETOWN_EX, F_OWNER_TID)
// sends the reserved signal to the monitor, with the descriptor; the monitor posts what the program has asked for.
#include "arch/x86_64/cpu.h"
#include "kernel/memory.h"
#include "linux/signal.h"

namespace upcall::linux_abi {

using namespace signals;

namespace {

enum : int32_t { setown = 8, getown = 9, setsig = 10, getsig = 11, setown_ex = 15, getown_ex = 16 };
constexpr int32_t owner_tid = 0;  // F_OWNER_TID
constexpr int sigio = 29;

struct OwnerEx {
  int32_t type, pid;
};

struct Owner {
  Owner* next;
  int32_t file, tid, signal;
};

Owner* g_owners = nullptr;  // g_lock guards both lists; programs have a few
Owner* g_free = nullptr;

Owner** find(int32_t file) noexcept {
  Owner** link = &g_owners;
  while (*link && (*link)->file != file) link = &(*link)->next;
  return link;
}

// The thread and the signal of a descriptor. What is known of it may be about a file that has been closed.
bool known(int32_t file, Owner* copy) noexcept {
  OwnerEx now;
  if (!__atomic_load_n(&g_owners, __ATOMIC_RELAXED)) return false;
  bool ours = kernel::sys(__NR_fcntl, file, getown_ex, &now) == 0 && now.type == owner_tid &&
              now.pid == activation::monitor_tid();
  LockGuard guard(g_lock);
  const Owner* o = *find(file);
  if (!o || !ours) return false;
  *copy = *o;
  return true;
}

void forget(int32_t file) noexcept {
  LockGuard guard(g_lock);
  Owner** link = find(file);
  if (Owner* o = *link) {
    *link = o->next;
    o->next = g_free;
    g_free = o;
  }
}

bool note(int32_t file, int32_t tid, int32_t signal) noexcept {
  LockGuard guard(g_lock);
  Owner** link = find(file);
  if (!*link) {
    if (!g_free) {
      constexpr size_t bytes = 4096;
      auto* block = static_cast<Owner*>(kernel::map_pages(bytes));
      if (!block) return false;
      for (size_t i = 0; i < bytes / sizeof(Owner); ++i) {
        block[i].next = g_free;
        g_free = &block[i];
      }
    }
    Owner* o = g_free;
    g_free = o->next;
    o->next = nullptr;
    *link = o;
  }
  (*link)->file = file, (*link)->tid = tid, (*link)->signal = signal;
  return true;
}

long set_thread(int32_t file, int32_t tid) noexcept {
  Owner old;
  long signal = known(file, &old) ? old.signal : kernel::sys(__NR_fcntl, file, getsig);
  if (signal < 0) return signal;
  OwnerEx monitor = {owner_tid, activation::monitor_tid()};
  if (!note(file, tid, static_cast<int32_t>(signal))) return -e_nomem;
  long r = kernel::sys(__NR_fcntl, file, setown_ex, &monitor);
  if (r == 0) r = kernel::sys(__NR_fcntl, file, setsig, activation::preempt_signal);
  return r;
}

}  // namespace

bool is_owner_call(int32_t command) noexcept {
  return command == setown || command == getown || command == setsig || command == getsig ||
         command == setown_ex || command == getown_ex;
}

Thread* sys_file_owner(Thread* t) noexcept {
  auto file = static_cast<int32_t>(t->rdi);
  auto command = static_cast<int32_t>(t->rsi);
  OwnerEx owner;
  if (command == setown_ex) {
    if (upcall_copy_user(&owner, reinterpret_cast<void*>(t->rdx), sizeof owner)) return answer(t, -e_fault);
    if (owner.type == owner_tid && sched::g_threads.find(owner.pid))
      return answer(t, set_thread(file, owner.pid));
  }
  Owner of;
  if (!known(file, &of)) return pass(t);
  switch (command) {
    case getown:
      return answer(t, of.tid);
    case getsig:
      return answer(t, of.signal);
    case getown_ex:
      owner = {owner_tid, of.tid};
      return answer(t,
                    upcall_copy_user(reinterpret_cast<void*>(t->rdx), &owner, sizeof owner) ? -e_fault : 0);
    case setsig: {
      auto signal = static_cast<int64_t>(t->rdx);
      if (signal < 0 || signal > signal_count) return answer(t, -e_inval);
      note(file, of.tid, static_cast<int32_t>(signal));
      return answer(t, 0);
    }
    default: {  // somebody else from now on
      long r = raw_call(t);
      if (r == 0) {
        kernel::sys(__NR_fcntl, file, setsig, of.signal);
        forget(file);
      }
      return answer(t, r);
    }
  }
}

void signals::post_file(const Info& from_kernel) noexcept {
  int32_t file;  // si_fd follows si_band
  __builtin_memcpy(&file, from_kernel.rest + 8, sizeof file);
  int32_t tid = 0, signal = 0;
  {
    LockGuard guard(g_lock);
    if (const Owner* o = *find(file)) tid = o->tid, signal = o->signal;
  }
  Thread* target = sched::g_threads.find(tid);
  if (!target) return;
  Info info = from_kernel;
  if (!signal) {  // not asked for by F_SETSIG: without the file
    constexpr int32_t si_kernel = 0x80;
    info = {};
    info.code = si_kernel;
    signal = sigio;
  }
  info.signo = signal;
  post_thread(target, signal, info);
}

void signals::forget_files() noexcept { g_owners = nullptr; }

}  // namespace upcall::linux_abi
