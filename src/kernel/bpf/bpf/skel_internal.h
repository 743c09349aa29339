/* What a light skeleton (bpftool gen skeleton -L) asks of its surroundings, without a C library: stands where libbpf's
 * header of this name would. A light skeleton holds a BPF program that makes all maps and programs when it is run, so
 * that a few plain bpf(2) calls are all that is needed to load it. Names and layouts are libbpf's. */
#pragma once

#include <asm/unistd.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

struct bpf_map_desc {
  int map_fd; /* answer */
  __u32 max_entries;
  __aligned_u64 initial_value;
};
struct bpf_prog_desc {
  int prog_fd; /* answer */
};
struct bpf_loader_ctx {
  __u32 sz;
  __u32 flags;
  __u32 log_level;
  __u32 log_size;
  __u64 log_buf;
};
struct bpf_load_and_run_opts {
  struct bpf_loader_ctx* ctx;
  const void* data;
  const void* insns;
  __u32 data_sz;
  __u32 insns_sz;
  const char* errstr;
};

static inline long skel_syscall(long nr, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

/* Here and below: a result or -errno. */
static inline int skel_sys_bpf(enum bpf_cmd cmd, union bpf_attr* attr, unsigned int size) {
  return (int)skel_syscall(__NR_bpf, cmd, (long)attr, size, 0, 0, 0);
}

static inline void* skel_alloc(size_t size) {
  long r = skel_syscall(__NR_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return r < 0 && r > -4096 ? NULL : (void*)r;
}
static inline void skel_free(const void* p) { skel_syscall(__NR_munmap, (long)p, 1, 0, 0, 0, 0); }

static inline int skel_closenz(int fd) {
  return fd > 0 ? (int)skel_syscall(__NR_close, fd, 0, 0, 0, 0, 0) : -9;
}

static inline int skel_raw_tracepoint_open(const char* name, int prog_fd) {
  union bpf_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.raw_tracepoint.name = (__u64)name;
  attr.raw_tracepoint.prog_fd = (__u32)prog_fd;
  return skel_sys_bpf(BPF_RAW_TRACEPOINT_OPEN, &attr, sizeof attr.raw_tracepoint);
}

static inline int skel_run(int prog_fd, void* context, __u32 bytes) {
  union bpf_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.test.prog_fd = (__u32)prog_fd;
  attr.test.ctx_in = (__u64)context;
  attr.test.ctx_size_in = bytes;
  int r = skel_sys_bpf(BPF_PROG_RUN, &attr, sizeof attr.test);
  return r < 0 ? r : (int)attr.test.retval;
}

/* The loader's data in a map of one element. */
static inline int skel_data_map(const void* data, __u32 bytes) {
  union bpf_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.map_type = BPF_MAP_TYPE_ARRAY;
  attr.key_size = 4;
  attr.value_size = bytes;
  attr.max_entries = 1;
  memcpy(attr.map_name, "upcall_load", sizeof "upcall_load");
  int fd = skel_sys_bpf(BPF_MAP_CREATE, &attr, sizeof attr);
  if (fd < 0) return fd;
  __u32 key = 0;
  memset(&attr, 0, sizeof attr);
  attr.map_fd = (__u32)fd;
  attr.key = (__u64)&key;
  attr.value = (__u64)data;
  int r = skel_sys_bpf(BPF_MAP_UPDATE_ELEM, &attr, sizeof attr);
  if (r >= 0) return fd;
  skel_closenz(fd);
  return r;
}

static inline int bpf_load_and_run(struct bpf_load_and_run_opts* opts) {
  opts->errstr = "making a map";
  int map_fd = skel_data_map(opts->data, opts->data_sz);
  if (map_fd < 0) return map_fd;
  union bpf_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.prog_type = BPF_PROG_TYPE_SYSCALL;
  attr.insns = (__u64)opts->insns;
  attr.insn_cnt = opts->insns_sz / (__u32)sizeof(struct bpf_insn);
  attr.license = (__u64) "Dual BSD/GPL";
  memcpy(attr.prog_name, "upcall_load", sizeof "upcall_load");
  attr.fd_array = (__u64)&map_fd;
  attr.prog_flags = BPF_F_SLEEPABLE;
  int prog_fd = skel_sys_bpf(BPF_PROG_LOAD, &attr, sizeof attr);
  int r = prog_fd < 0 ? prog_fd : skel_run(prog_fd, opts->ctx, opts->ctx->sz);
  skel_closenz(map_fd);
  skel_closenz(prog_fd);
  return r;
}
