# shellcheck shell=bash disable=SC2034 # used by run and init
# What is run on each kernel. Emulation is slow, hence a choice: what depends on the kernel first (calls that block,
# preemption, signals, stacks, processes, cgroups, scheduling classes), then one program of each kind.

# Once under each source of events: the counters say which one has seen the blocking.
UNSEEN='unseen_call unseen_fault unseen_storm blocking_pipe'
# Ask for BPF themselves, and for its being loaded.
BPF='bpf_hidden bpf_preempted bpf_stops'
# Without privilege, and with calls refused.
CONFINED='create_join unseen_fault'
# With 1 and 2 processors.
GENERAL='cond_signal futex_shared cancel_async preempt_libc x87_state blocking_socket blocking_process aio signalfd
  signal_restart sync_signals pshared_mutex fork_threads exec_from_thread vfork_exec kill_process reuse_setuid
  stack_overflow stack_overflow_user stack_user stack_zeroed threads_10000 library_dlopen affinity_outside
  class_idle cpu_quota activation_cap ptrace_attach'
