// The benchmarks and their targets.
#include "bench.h"

namespace upcall::tool {

const std::vector<Benchmark>& benchmarks() {
  using Rule = Benchmark::Rule;
  using Kind = Benchmark::Kind;
  using Peers = Benchmark::Peers;
  static const std::vector<Benchmark> list = {
      {"null_fork", "ns", "create and join an empty thread", Rule::times_faster, 40, false, false},
      {"signal_wait", "ns", "hand over by mutex and condition variable, one way", Rule::times_faster, 25,
       false, false},
      {"yield", "ns", "two threads yield to each other, per yield", Rule::times_faster, 55, false, false},
      {"fork_batch", "ns", "10,000 threads alive at once, then joined, per thread", Rule::times_faster, 15,
       true, false},
      {"dc_sum", "ns", "divide-and-conquer sum, a thread per node of the tree, per thread",
       Rule::times_faster, 20, false, false},
      {"mutex_contended", "ns", "four threads on one mutex, per lock and unlock", Rule::none, 0, false,
       false},
      {"spin_lock", "ns", "eight threads hold a pthread_spin_lock for 20 us in turn, per lock and unlock",
       Rule::at_most_times, 0.5, false, true},
      {"spin_own", "ns", "the same with a spin lock of the program's own", Rule::none, 0, false, true},
      {"fair_share", "%", "share of a CPU of four computing threads beside another program", Rule::none, 0,
       false, true},
      {"fair_share_threads", "%", "the same with --share threads", Rule::none, 0, false, true},
      {"memory", "bytes", "process's and kernel's memory per suspended thread, 30,000 of them",
       Rule::times_less, 2, true, true},
      {"stall_read", "us", "longest gap of a computing thread while another blocks 50 ms in read",
       Rule::at_most, 100, false, false, Kind::alone, Peers::stalls},
      {"stall_fault", "us", "the same, blocked in a page fault", Rule::at_most, 100, false, false,
       Kind::alone, Peers::stalls},
      {"fault_storm", "us", "64 threads in page faults of 50 us beside 2 that compute, per fault",
       Rule::at_most_times, 1.11, false, false},
      {"io_test", "ns", "two threads by turns read and write through pipes, per message", Rule::times_faster,
       2, false, false},
      {"kernel_signal_wait", "ns", "hand over by a shared futex, through the kernel, one way",
       Rule::at_most_times, 1.35, false, false},
      {"blocked_many", "ms", "a fixed computation beside 1,000 threads blocked in read", Rule::at_most_times,
       1.02, true, true},
      {"idle_cost", "%", "CPU time of 100 sleeping threads", Rule::at_most, 1, false, true},
      {"syscall_overhead", "ns", "getppid()", Rule::at_most_added, 15, false, true},
      {"syscall_function", "ns", "syscall(SYS_getppid)", Rule::at_most_added, 15, false, true},
      {"signal_thread", "ns", "pthread_kill until the other thread's handler has returned",
       Rule::times_faster, 3, false, false},
      {"mask_pair", "ns", "a signal blocked and unblocked again", Rule::times_faster, 5, false, true},
      {"fork_exec", "ms", "fork, exec of /bin/true and wait, beside seven blocked threads",
       Rule::share_and_added, 0.2, false, false},
      {"echo_1", "req/s", "echo server over TCP, a thread per connection: requests a second on 1 connection",
       Rule::times_more, 1, false, true, Kind::paired, Peers::echo},
      {"echo_1000", "req/s", "the same on 1,000 connections that are all busy", Rule::times_more, 2, false,
       true, Kind::paired, Peers::echo},
      {"echo_10000", "req/s", "the same on 10,000", Rule::times_more, 2, false, true, Kind::paired,
       Peers::echo},
      {"idle_10000", "%", "CPU time of the echo server in 30 s in which none of 10,000 connections is used",
       Rule::at_most, 0.1, false, true, Kind::paired},
      {"reactivity_tcp", "us", "p99 of a ping-pong over TCP with a thread beside 64 that compute",
       Rule::at_most, 1000, false, true, Kind::paired},
      {"reactivity_unix", "us", "the same over a Unix socket", Rule::at_most, 1000, false, true,
       Kind::paired},
      {"detector_overhead", "us", "round trip over a socket pair with another process on the same CPU",
       Rule::at_most_added, 0.3, false, true, Kind::paired},
      {"detector_remote", "us", "the same with the other process on another CPU", Rule::at_most_added, 0.3,
       false, true, Kind::paired},
      {"disk_cold", "IO/s", "random reads of 4 KiB by 64 threads, nothing in the page cache", Rule::none, 0,
       false, true, Kind::alone, Peers::disk},
      {"disk_direct", "IO/s", "the same around the page cache (O_DIRECT)", Rule::none, 0, false, true,
       Kind::alone, Peers::disk},
      {"disk_warm", "ns", "the same with everything in the page cache, per read", Rule::at_most_bare, 1.1,
       false, true, Kind::alone, Peers::disk},
      {"startup", "ms", "start and end of a program that links libc only", Rule::at_most_added, 20, false,
       true},
  };
  return list;
}

}  // namespace upcall::tool
