// Loading the programs of switches.bpf.c. In C as the skeleton is; neither libc nor TLS, for the runtime.
#include "kernel/bpf/switches.h"

#include <errno.h>

#ifndef UPCALL_BPF

long upcall_load_switches(struct switch_table** table, const char** refused) {
  *refused = "built without BPF";
  return -ENOSYS;
}

#else

#include <linux/time_types.h>

#include "kernel/bpf/switches.lskel.h"

// Do events arrive? Our own sleeps must be seen; not every one: woken before another thread had the CPU, we never left it.
static int events_arrive(struct switch_table* table) {
  __u32 tid = (__u32)skel_syscall(__NR_gettid, 0, 0, 0, 0, 0, 0), state = 0;
  struct switch_entry* e = table->bucket[tid % SWITCH_BUCKETS];
  __atomic_store_n(&e->tid, tid, __ATOMIC_RELAXED);
  for (int i = 0; i < 20 && state < SWITCH_EVENT; ++i) {
    struct __kernel_timespec moment = {0, 100000};
    skel_syscall(__NR_nanosleep, (long)&moment, 0, 0, 0, 0, 0);
    state = __atomic_load_n(&e->state, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&e->tid, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&e->state, 0, __ATOMIC_RELAXED);
  return state >= SWITCH_EVENT;
}

static long load(struct switches* s, struct switch_table** table, const char** refused) {
  *refused = "BPF_PROG_LOAD";
  int r = switches__load(s);
  if (r < 0) return r;
  *refused = "BPF_PROG_RUN";
  if ((r = skel_run(s->progs.identify.prog_fd, NULL, 0)) < 0) return r;
  *refused = "attaching to sched_switch and sched_wakeup";
  if ((r = switches__attach(s)) < 0) return r;
  *refused = "mapping the table";
  long at = skel_syscall(__NR_mmap, 0, sizeof(struct switch_table), PROT_READ | PROT_WRITE, MAP_SHARED,
                         s->maps.table.map_fd, 0);
  if (at < 0 && at > -4096) return at;
  *table = (struct switch_table*)at;
  *refused = "no events of this process arrive";
  if (events_arrive(*table)) return 0;
  skel_syscall(__NR_munmap, at, sizeof(struct switch_table), 0, 0, 0, 0);
  return -ENODATA;
}

static long load_once(struct switch_table** table, const char** refused) {
  *refused = "memory";
  struct switches* s = switches__open();
  if (!s) return -ENOMEM;
  long r = load(s, table, refused);
  if (r == 0) s->links.on_switch_fd = s->links.on_wakeup_fd = 0;  // not closed below
  switches__destroy(s);
  return r;
}

// The kernel's verifier gives up, with EAGAIN, when a signal comes: when the process is stopped, or its credentials change.
long upcall_load_switches(struct switch_table** table, const char** refused) {
  long r = -EAGAIN;
  for (int i = 0; i < 20 && (r == -EAGAIN || r == -EINTR); ++i) r = load_once(table, refused);
  return r;
}

#endif
