# shellcheck shell=bash disable=SC2034 # used by run
# What is run on each C library: what depends on how glibc does it. Cancellation first, then ends of threads and their
# destructors, reuse of threads, waits called by symbol, signals, fork and exec, set*id, libraries that come before ours.
PROGRAMS='cancel_* exit_* tsd_* unwind_* cond_* reuse_cancel reuse_d* reuse_ended reuse_fork reuse_join* reuse_kill
  reuse_locale reuse_main_exit reuse_owner reuse_setuid reuse_signals reuse_tls create_join join_kinds c11_threads
  main_* fork_* exec_* posix_spawn vfork_exec system_popen sem* mutex_* once rwlock barrier robust_mutex stdio_locks
  signal* sigwait_* sigsuspend_pause handler_* pthread_kill_states thread_exceptions tls resolver stack_min stack_user
  setid_* library_* malloc_replaced interrupt_pthread'
# Objects of these.
OBJECTS='plugin forking_plugin eager_plugin early_library tls_library unwind_library'
