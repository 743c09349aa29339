// What blocks a thread for 50 ms, and the process that ends it: in plain C that C++ can include too, for the programs in
// bench/peers do the same.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PAGE = 4096, STALL_NS = 50000000, MOST_STALLS = 60 };

extern int fault_fd;  // a userfaultfd for fault_area; -1: none
extern char* fault_area;
extern pid_t helper;

void nap(uint64_t ns);
// What blocks is read: answers come by pipe. Or a page fault: in pages, which are missing until somebody brings them.
void open_fault_area(long pages);
void bring_page(char* page);
// Forks the process that answers; to be called before there are threads.
void start_answers(void);
void end_helper(void);
// The answering process: each request of 8 bytes from `in` is the address of a page to bring or, without a userfaultfd, what
// to write to `out`. Ends with its input.
void answer_requests(int in, int out);

// Each asks for its answer and blocks until it comes; `i` counts from 0 to MOST_STALLS - 1.
void block_in_read(int i);
void block_in_fault(int i);

#ifdef __cplusplus
}
#endif
