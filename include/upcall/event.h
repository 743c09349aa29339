/* Requests to event sources of any kind, and the drivers that look after them.
 *
 * A request is something that will be over later: a message, a transfer, a descriptor's readiness, a point in time. A thread
 * that waits for one leaves its processor to other threads. Drivers say how requests are looked at (polling) and how their
 * kind can be waited for in the kernel (blocking); which of the two is done, and when, is decided here: after PIOMan
 * (F. Trahay: "PIOMan : un gestionnaire d'entrées-sorties générique", RenPar 18, Fribourg 2008).
 *
 * The memory of a request is the caller's, from upcall_submit until it is complete. A request without a driver is a user
 * event: any thread completes it. Unless said otherwise functions return 0 or an error number (errno.h), may be called by any
 * thread of the process, with or without Upcall running it, but not from signal handlers; they are no cancellation points.
 * Times are nanoseconds of CLOCK_MONOTONIC.
 *
 * Link with -lupcall. On plain kernel threads ("upcall run" not used, or not possible here) everything works the same way.
 */
#ifndef UPCALL_EVENT_H
#define UPCALL_EVENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UPCALL_FOREVER UINT64_MAX

typedef struct upcall_driver upcall_driver;
typedef struct upcall_request upcall_request;

struct upcall_request {
  /* What the client sets before it submits the request. All zero: the usual. */
  void *data;        /* the driver's: what is asked for */
  void *user;        /* the client's own */
  int32_t priority;  /* higher ones are submitted to the device, looked at and completed first */
  uint32_t reserved; /* 0 */
  uint64_t deadline; /* it then fails with -ETIMEDOUT; 0: none */
  /* Called once it is complete, by whoever has found out. It may only enqueue: submit and complete requests, post a
   * semaphore; it must not wait. Such a request belongs to its call-back, which may free it: nobody else may wait for it. */
  void (*completed)(upcall_request *);
  /* What the driver leaves, valid once it is complete: by convention a count or 0, or an error as -errno. */
  int64_t result;
  /* The driver's, while the request is in its device. */
  uint64_t device[2];
  /* Private. Begins as zero. */
  upcall_driver *driver_;
  upcall_request *next_, *previous_;
  uintptr_t state_;
  uint64_t submitted_;
  uint32_t place_, number_;
};

/* What a driver's requests are waited for by. */
typedef enum upcall_action {
  UPCALL_POLL_AGAIN,   /* look again at once, unless another thread can run */
  UPCALL_POLL_AT_HOOK, /* look again when a processor becomes idle, has switched threads for a while, or at the next tick */
  UPCALL_SLEEP,        /* look again after a while that grows from 20 us to 1 ms */
  UPCALL_BLOCK         /* wait_group: in the kernel, on a kernel thread that does not count against the processors */
} upcall_action;

/* What the choice is made from. Times in ns. */
typedef struct upcall_situation {
  uint32_t pending;         /* requests in the device */
  uint32_t completed;       /* by the poll just made */
  uint32_t idle_processors; /* 0: all compute */
  uint32_t ready_threads;   /* that would run here if the poller did not */
  uint64_t since;           /* since the last completion, or since there was nothing pending */
  uint64_t typical;         /* how long requests have taken lately, or the hint */
  uint64_t poll_cost;       /* of one poll, measured, or the hint */
  int can_block;            /* there is a wait_group and it works */
} upcall_situation;

/* Call-backs of a driver: they get the context given at registration. `submit`, `poll`, `poll_group` and `cancel` are never
 * called concurrently for one driver; they must not block for long: the driver's other requests wait meanwhile. They run
 * in threads of the program, with thread-local variables and a stack as usual, and may call whatever a thread may call, but
 * no function of this header for their own driver except upcall_complete. One of poll and poll_group is needed. */
typedef struct upcall_driver_ops {
  size_t size;      /* sizeof(upcall_driver_ops): later versions add members */
  const char *name; /* for messages */
  /* Hands a request to the device. 0, or an error number: the request fails with it, negated. May complete it at once.
   * EAGAIN: the device is full; it is submitted again after the next completion. */
  int (*submit)(void *context, upcall_request *request);
  /* Looks at one request. 1: complete, with its result in request->result; 0: not yet; -errno: it has failed with that. */
  int (*poll)(void *context, upcall_request *request);
  /* Looks at all that is in the device, and calls upcall_complete for what is over. 0, or -errno: all have failed. */
  int (*poll_group)(void *context);
  /* Waits in the kernel until a look may find something, `wake` was called (also before this call began), or `timeout`
   * ns are over (UPCALL_FOREVER: none). It completes nothing: that is for the look that follows. 0, or -errno: it is not used
   * any more, but for -EINTR. */
  int (*wait_group)(void *context, uint64_t timeout);
  /* Ends wait_group. Called from any thread, at any time. Must be given if wait_group is. */
  void (*wake)(void *context);
  /* The device forgets a request: 0, nobody will complete it any more; EBUSY: it is too late, it goes on. */
  int (*cancel)(void *context, upcall_request *request);
  /* Decides instead of the built-in policy, whose choice is `usual`. */
  upcall_action (*strategy)(void *context, const upcall_situation *situation, upcall_action usual);
  /* Hints; 0: not known. */
  uint64_t typical;   /* how long a request takes, ns */
  uint64_t poll_cost; /* what a poll costs, ns */
  uint32_t depth;     /* requests that the device takes at a time; 0: any number. The others queue, by priority */
  uint32_t flags;
} upcall_driver_ops;

/* upcall_driver_ops.flags */
#define UPCALL_WAIT_SEES_NEW 1u   /* wait_group notices requests submitted while it waits: no wake is needed */
#define UPCALL_SUBMIT_LATER 2u    /* requests are handed to the device by the driver's poller, on whichever processor is
                                     free, not by the thread that submits them: for submissions that cost much */
#define UPCALL_DEADLINE_IS_END 4u /* deadlines are what is waited for: the result is 0 then, not -ETIMEDOUT */

/* EINVAL: no way to look at requests, wait_group without wake, or another version's size. ENOMEM. The ops are copied. */
int upcall_driver_register(upcall_driver **driver, const upcall_driver_ops *ops, void *context);
/* EBUSY: requests are pending. Waits for a wait_group in progress to return after wake, and for threads that are inside of a
 * call with this driver. Not for the drivers that come with the library. */
int upcall_driver_unregister(upcall_driver *driver);

/* Begins a request; does not wait for the device. EINVAL: it is pending, or has no deadline where that is its end; ENOTSUP: a
 * deadline, but the driver keeps requests where it cannot be told to forget them (submit or poll_group without cancel), or
 * there is no driver; EAGAIN: no poller thread was to be had. A request that
 * the device refuses is complete, with the error as its result. Without a driver (null): a user event begins. */
int upcall_submit(upcall_driver *driver, upcall_request *request);
/* By a driver's call-backs, and for user events by any thread. Wakes whoever waits. EALREADY: it was complete already. */
int upcall_complete(upcall_request *request, int64_t result);
/* 1: complete; 0: not yet. Looks itself if nobody does. Never waits. */
int upcall_test(upcall_request *request);
/* Blocks the thread until the request is complete (0) or that time has come (ETIMEDOUT; the request goes on). One thread at
 * a time may wait for a request: EBUSY. EINVAL: it was never submitted. */
int upcall_wait(upcall_request *request, uint64_t until);
/* The same for one of several, whose index goes to *which. Of several that are complete the one of highest priority, then
 * the first. Null entries are passed over; EINVAL: nothing to wait for. */
int upcall_wait_any(upcall_request *const *requests, size_t count, uint64_t until, size_t *which);
/* 0: the request is complete with -ECANCELED; EALREADY: with something else; EBUSY: the device will not let it go; ENOTSUP:
 * the driver has no way to do so; EINVAL: it was never submitted. */
int upcall_cancel(upcall_request *request);
/* Now, for deadlines. */
uint64_t upcall_now(void);

/* Drivers that come with the library. */
/* Complete at their deadline, with 0. */
upcall_driver *upcall_timers(void);
/* A descriptor's readiness: poll(2)'s events; the result is poll's revents. Readiness only, nothing is read or written. It
 * waits for a copy of the descriptor: closing that does not end it, nor is the file closed before it is complete. Results:
 * -EBADF, -EMFILE, and what epoll_ctl(2) says. EINVAL: the request is pending; otherwise epoll is not to be had. */
int upcall_submit_descriptor(upcall_request *request, int descriptor, short events);
/* A child's end; it stays to be waited for (waitpid). ECHILD: no such child; ENOSYS: Linux before 5.3. */
int upcall_submit_child(upcall_request *request, pid_t child);

#ifdef __cplusplus
}
#endif
#endif
