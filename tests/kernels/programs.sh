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
GENERAL='create_join cond_signal mutex_timed sem_waits futex_requeue futex_shared cancel_async
  preempt_libc register_preempt x87_state priorities
  blocking_socket blocking_process blocked_readers aio signalfd
  signal_restart sigwait_two sync_signals sleep_order pshared_mutex robust_mutex
  fork_threads exec_from_thread posix_spawn vfork_exec kill_process reuse_setuid
  stack_overflow stack_user stack_zeroed tls library_dlopen reuse_tls threads_10000
  affinity_outside class_fifo class_idle cpu_quota share_threads activation_cap ptrace_attach proc_files'
