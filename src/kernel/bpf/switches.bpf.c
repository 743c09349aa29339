// Runs in the kernel: notes for the kernel threads of one process whether they sleep. Only threads that the runtime has
// entered in the table are written about; for all others on the machine it is a load and a compare.
// Structure offsets are taken from the running kernel (CO-RE): only the members named here must exist.
// clang-format off: bpf.h first
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
// clang-format on

#include "kernel/bpf/switches.h"

#define KERNELS __attribute__((preserve_access_index))

struct upid {
  int nr;
  void* ns;
};
struct pid {
  unsigned int level;
  struct upid numbers[1];
} KERNELS;
struct task_struct {
  unsigned int __state;
  int tgid;
  struct pid* thread_pid;
} KERNELS;

enum { TASK_INTERRUPTIBLE = 1, TASK_UNINTERRUPTIBLE = 2 };

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct switch_table);
} table SEC(".maps");

static __always_inline void note(struct task_struct* p, __u32 blocked) {
  __u32 key = 0, tid = 0;
  struct switch_table* t = bpf_map_lookup_elem(&table, &key);
  if (!t || (__u32)p->tgid != t->process) return;
  // The id in the innermost PID namespace: what the process itself reads.
  struct pid* pid = p->thread_pid;
  const char* numbers = (const char*)&pid->numbers;
  bpf_probe_read_kernel(&tid, sizeof tid, numbers + pid->level * sizeof(struct upid));
  if (!tid) return;  // it is ending
  struct switch_entry* e = t->bucket[tid % SWITCH_BUCKETS];
  for (int i = 0; i < SWITCH_WAYS; ++i) {
    if (e[i].tid != tid) continue;
    // Events of one kernel thread come one after the other.
    e[i].state = ((e[i].state & ~SWITCH_BLOCKED) + SWITCH_EVENT) | blocked;
    return;
  }
}

// __state, not the event's argument: before 6.13 that shows a sleep which a pending signal has called off.
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, _Bool preempted, struct task_struct* prev) {
  note(prev, !preempted && (prev->__state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)));
  return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct* p) {
  note(p, 0);
  return 0;
}

// Run once by the process itself: its own view of its id is that of its PID namespace.
SEC("syscall")
int identify(void* context) {
  __u32 key = 0;
  struct switch_table* t = bpf_map_lookup_elem(&table, &key);
  if (t) t->process = bpf_get_current_pid_tgid() >> 32;
  return 0;
}

char LICENSE[] SEC("license") = "GPL";
