/* Who owns a processor: the protocol of src/activation (blocking.cc, detach.cc, sentinel.cc, scheduler.cc, activation.cc),
 * one processor, its activations, its sentinel, somebody outside who wakes threads. Checked by `./dev model` with Spin.
 *
 * Interleaving is at the granularity of single accesses to shared words; compare-and-swap is one step. The asymmetric fence
 * of detach (membarrier against a compiler barrier) is taken to do what it promises: memory is sequentially consistent here.
 *
 * Checked: no two owners touch the processor's private data (assertions in OWN); no thread stays ready while nothing moves
 * any more (Observer); with -DMONITOR the same with a second detacher; no activation sleeps for ever with a thread (same). The monitor's ticks are left out on purpose:
 * the protocol must not need them, but for the signal that stops an activation that computes without a processor.
 *
 * The epoch counts modulo 32; behaviours are cut off after BUDGET actions of threads, so it never comes round.
 */
#ifndef NA
#define NA 3 /* activations: one for each thread that may be stuck, one that runs */
#endif
#define NT 2 /* threads; thread i is bit 1 << i */
#ifndef BUDGET
#define BUDGET 2
#endif
#ifndef WAKES
#define WAKES 1
#endif

#define RUNNING 1
#define KERNEL 2
#define IDLE 3

/* the owner word */
byte state = RUNNING;
byte owner = 0;
byte epoch = 0;

byte ready = 2;   /* threads in queue or inbox */
byte waiting = 0; /* threads that wait for something */
byte armed = 1; /* a thread is ready from the start */
bool wake[NA];      /* the futex an activation sleeps on */
bool pooled[NA];    /* parked, to be woken */
byte lost[NA]; /* marks of detachers */
bool in_runtime[NA];
bool asleep[NA]; /* blocked in the kernel where no call announced it */
byte inside = 0; /* 1 + who works on the processor's private data */
byte budget = BUDGET;
byte wakes = WAKES;

#define NEXT epoch = (epoch + 1) % 32
#define SAME(s, o, e) (state == s && owner == o && epoch == e)

/* take_back(): not detached yet? Then a new epoch, so that the detacher's compare-and-swap fails. */
#ifdef BUG_NO_EPOCH
#define CONFIRM ok = (state == RUNNING && owner == me)
#else
#define CONFIRM                            \
  atomic {                                 \
    ok = (state == RUNNING && owner == me); \
    if                                     \
    :: ok -> NEXT                          \
    :: else -> skip                        \
    fi                                     \
  }
#endif

/* Private work: a step in which nobody else may be at it. */
#define OWN(step)                                     \
  assert(inside == 0 && state == RUNNING && owner == me); \
  inside = 1 + me;                                    \
  step;                                               \
  inside = 0

/* Wakes a parked activation, if there is one. */
inline wake_pooled() {
  atomic {
    if
    :: pooled[0] -> pooled[0] = false; wake[0] = true
    :: pooled[1] -> pooled[1] = false; wake[1] = true
    :: pooled[NA - 1] -> pooled[NA - 1] = false; wake[NA - 1] = true
    :: else -> armed = 1 /* one is made, or awake and on its way: somebody looks again */
    fi
  }
}

/* Something was put into the inbox: kick() */
inline kick() {
  atomic { s = state; o = owner; e = epoch }
  if
  :: s == RUNNING -> armed = 1
  :: s == IDLE -> wake[o] = true
  :: s == KERNEL -> wake_pooled()
  :: else -> skip
  fi
}

/* claim_back(): from an owner that sleeps or is in the kernel itself; sets ok */
inline claim_back() {
  atomic { s = state; o = owner; e = epoch }
  ok = false;
  if
  :: s == IDLE ->
    atomic {
      if
      :: SAME(IDLE, o, e) -> state = RUNNING; owner = me; NEXT; ok = true
      :: else -> skip
      fi
    }
    if
    :: ok -> pooled[o] = true /* the sleeper */
    :: else -> skip
    fi
  :: s == KERNEL ->
    atomic {
      if
      :: SAME(KERNEL, o, e) -> state = RUNNING; owner = me; NEXT; ok = true
      :: else -> skip
      fi
    }
  :: else -> skip
  fi
}

/* detach(): s, o, e have been read, perhaps long ago; sets ok */
#ifdef BUG_ONE_MARK
#define UNMARK(mark) lost[o] = 0
#else
#define UNMARK(mark) lost[o] = lost[o] & (3 - mark)
#endif
inline detach(mark) {
  ok = false;
  if
  :: asleep[o] -> /* /proc says so */
    lost[o] = lost[o] | mark;
    if
#ifdef BUG_DETACH_INSIDE
    :: true ->
#else
    :: !in_runtime[o] ->
#endif
      atomic {
        ok = SAME(RUNNING, o, e);
        if
        :: ok -> state = KERNEL; NEXT
        :: else -> skip
        fi
      }
    :: else -> skip
    fi;
    if
    :: !ok -> UNMARK(mark)
    :: else -> skip
    fi
  :: else -> skip
  fi
}

proctype Activation(byte me; byte first) {
  byte t = first; /* the thread it runs, 0: none */
  byte s, o, e, mine;
  bool ok;
  if
  :: t != 0 -> goto user
  :: else -> goto park
  fi;

user: /* runs t in user mode, perhaps without a processor */
  in_runtime[me] = false;
  if
  :: atomic { budget > 0 -> budget-- }; asleep[me] = true; /* page fault, plain call */ asleep[me] = false; goto user
  :: atomic { budget > 0 -> budget-- }; goto call
  :: goto wait
  :: lost[me] != 0 -> goto signalled
  fi;

signalled: /* the monitor's signal: surrender_if_lost */
  in_runtime[me] = true;
  if
  :: lost[me] != 0 -> goto take_back_then_user
  :: else -> goto user
  fi;
take_back_then_user:
  lost[me] = 0;
  CONFIRM
  if
  :: ok -> goto user
  :: else -> skip
  fi;
  claim_back();
  if
  :: ok -> goto user
  :: else -> goto leave
  fi;

call: /* a call that may block */
  in_runtime[me] = true;
  if
  :: lost[me] != 0 ->
    lost[me] = 0;
    CONFIRM
    if
    :: ok -> skip
    :: else -> claim_back();
      if
      :: ok -> skip
      :: else -> goto leave
      fi
    fi
  :: else -> skip
  fi;
  OWN(skip);
  atomic { state = KERNEL; owner = me; NEXT; mine = epoch }
  if
  :: ready != 0 -> armed = 1
  :: else -> skip
  fi;
  /* in the kernel; for ever, perhaps */
  if
  :: skip
  :: goto stuck
  fi;
  atomic {
    ok = SAME(KERNEL, me, mine);
    if
    :: ok -> state = RUNNING; NEXT
    :: else -> skip
    fi
  }
  if
  :: ok -> goto user
  :: else -> skip
  fi;
  claim_back();
  if
  :: ok && ready == 0 -> goto user
  :: ok && ready != 0 -> atomic { ready = ready | t; t = 0 } goto schedule
  :: else -> goto leave
  fi;

leave: /* leave_thread */
  atomic { ready = ready | t; t = 0 }
  kick();
  goto park;

wait: /* the thread waits or ends */
  in_runtime[me] = true;
  if
  :: lost[me] != 0 ->
    lost[me] = 0;
    CONFIRM
    if
    :: ok -> skip
    :: else -> claim_back();
      if
      :: ok -> skip
      :: else -> goto leave
      fi
    fi
  :: else -> skip
  fi;
  OWN(skip);
  atomic { waiting = waiting | t; t = 0 }

schedule:
  OWN(atomic {
    if
    :: ready & 1 -> t = 1; ready = ready & 2
    :: ready & 2 -> t = 2; ready = ready & 1
    :: else -> t = 0
    fi
  });
  if
  :: t != 0 -> goto user
  :: else -> skip
  fi;
  /* idle() */
  wake[me] = false;
#ifdef BUG_SLEEP_UNSEEN
  if
  :: ready != 0 -> goto schedule
  :: else -> skip
  fi;
#endif
  atomic { assert(state == RUNNING && owner == me); state = IDLE; NEXT; mine = epoch }
  if
#ifdef BUG_SLEEP_UNSEEN
  :: true ->
#else
  :: ready == 0 ->
#endif
end_idle: wake[me]
  :: else -> skip
  fi;
  atomic {
    ok = SAME(IDLE, me, mine);
    if
    :: ok -> state = RUNNING; NEXT
    :: else -> skip
    fi
  }
  if
  :: ok -> wake[me] = false; goto schedule
  :: else -> goto park_wait
  fi;

park:
  pooled[me] = true;
park_wait:
  in_runtime[me] = true;
end_park:
  atomic { wake[me] -> wake[me] = false }
  pooled[me] = false;
  atomic { s = state; o = owner; e = epoch }
  ok = false;
  if
  :: s == KERNEL ->
    atomic {
      if
      :: SAME(KERNEL, o, e) -> state = RUNNING; owner = me; NEXT; ok = true
      :: else -> skip
      fi
    }
  :: else -> skip
  fi;
  if
  :: ok -> goto schedule
  :: else -> skip
  fi;
  pooled[me] = true;
  if
  :: state == KERNEL && ready != 0 -> wake[me] = true
  :: else -> skip
  fi;
  goto park_wait;

stuck:
end_stuck:
  false
}

proctype Sentinel() {
  byte s, o, e, r;
  bool ok;
end_sleep:
  do
  :: armed ->
    atomic { s = state; o = owner; e = epoch }
    r = ready;
    if
    :: s == RUNNING && r != 0 ->
      ok = false;
      detach(1);
      if
      :: !ok -> goto end_sleep
      :: else -> skip
      fi
    :: else -> skip
    fi;
    armed = 0;
    atomic { s = state; o = owner; e = epoch }
    r = ready;
    if
    :: s == RUNNING && r != 0 -> armed = 1
    :: s == KERNEL && r != 0 -> wake_pooled()
    :: else -> skip
    fi
  od
}

#ifdef MONITOR
/* Looks now and then, here once; may be the faster of two detachers. */
proctype Monitor() {
  byte s, o, e;
  bool ok;
end_look:
  state == RUNNING && ready != 0 && asleep[owner] ->
  atomic { s = state; o = owner; e = epoch }
  if
  :: s == RUNNING -> detach(2)
  :: else -> skip
  fi;
  if
  :: state == KERNEL && ready != 0 -> wake_pooled()
  :: else -> skip
  fi
}
#endif

/* Another processor, a timer: threads that wait become ready. */
proctype Outside() {
  byte s, o, e;
end_nothing:
  do
  :: waiting != 0 && wakes > 0 ->
    atomic {
      wakes--;
      if
      :: waiting & 1 -> waiting = waiting & 2; ready = ready | 1
      :: waiting & 2 -> waiting = waiting & 1; ready = ready | 2
      fi
    }
    kick()
  od
}

/* Nothing can move any more: then no thread may be ready. */
proctype Observer() {
end_watch:
  timeout -> assert(ready == 0)
}

init {
  atomic {
    run Activation(0, 1);
    run Activation(1, 0);
    run Activation(NA - 1, 0);
    run Sentinel();
#ifdef MONITOR
    run Monitor();
#endif
    run Outside();
    run Observer()
  }
}
