/* The memory that the kernel's scheduler events are written to and the runtime reads: layout for both, in C. */
#pragma once

#include <linux/types.h>

/* Kernel threads are found by their id as the process knows it: the bucket of the same low bits, one cache line. */
enum { SWITCH_BUCKETS = 1024, SWITCH_WAYS = 8 };

/* tid 0: free. The runtime writes the whole entry once; then only the kernel writes `state`:
 *   bit 0 the kernel thread sleeps in the kernel (interruptible or not)
 *   rest  how often it has been switched away from or woken since; a state of 0: not known yet */
struct switch_entry {
  __u32 tid;
  __u32 state;
};
enum { SWITCH_BLOCKED = 1, SWITCH_EVENT = 2 };

struct switch_table {
  __u32 process; /* whose kernel threads are watched: its id as the initial PID namespace knows it */
  __u32 unused[15];
  struct switch_entry bucket[SWITCH_BUCKETS][SWITCH_WAYS];
};

#ifndef __bpf__
#ifdef __cplusplus
extern "C" {
#endif
/* Loads and attaches the BPF programs for the calling process, and sees that events arrive. 0 and the mapped table; or
 * -errno (ENOSYS: built without BPF; ENODATA: no events came) and what was refused. The events come for as long as two
 * descriptors that it leaves in the caller's table are open. Descriptor 0 must be in use. */
long upcall_load_switches(struct switch_table** table, const char** refused);
#ifdef __cplusplus
}
#endif
#endif
