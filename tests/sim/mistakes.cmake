# Mistakes that the simulation must find. Each takes away one thing that an argument in the sources rests on.

# Parking: publish idle(A), then look once more.
sim_mistake(idle_second_look activation/scheduler.cc 2000
  [[if (!p->has_work()) sleep_or_watch(a, p->timers.next(), &found);]]
  [[sleep_or_watch(a, p->timers.next(), &found);]])

# The same: idle(A) is published by a full fence.
sim_mistake(idle_fence activation/scheduler.cc 12000
  [[p->owner.exchange(sleeping.bits, fenced);]]
  [[p->owner.store(sleeping.bits, release);]]
  --focus calling --processors 1)

# An activation whose processor was claimed from its sleep is put into the pool by the claimant, once.
sim_mistake(adopted_twice activation/scheduler.cc 30000
  [[for (uint32_t i = 200; !a->adopted.load(acquire); ++i) wait_step(i);
    deliver_as_guest(a, found);
    pass_watch_on();  // idle processors may sleep without, because this one watched
    park_wait(a);]]
  [[park(a);]])

# Detaching: either the detacher sees in_runtime, or the activation sees lost.
sim_mistake(detach_fence activation/detach.cc 12000
  [[a->lost.fetch_or(mark, relaxed);
  heavy_fence();]]
  [[a->lost.fetch_or(mark, relaxed);]]
  --focus faulting --processors 1)

# Back from a call: by compare-and-swap only.
sim_mistake(taken_back_blindly activation/blocking.cc 2000
  [[if (!a->processor->owner.compare_exchange_strong(w.bits, w.next(Owner::running, a->index).bits, acq_rel,
                                                   acquire))
    return false;]]
  [[a->processor->owner.exchange(w.next(Owner::running, a->index).bits, acq_rel);]])

# Registers are saved before the thread is where others find it.
sim_mistake(saved_late activation/blocking.cc 2000
  [[// The thread's vector registers are in this kernel thread: saved before another one may run it.
  save_for_switch(t);]]
  [[]])

# A joiner that was entered and had not begun to wait is looked at again.
sim_mistake(joiner_second_look pthread/recycle.cc 80000
  [[if (Thread* j = waiter ? nullptr : joiner_of(w); j && claim_joiner(j, h)) activation::finish_wait(j, 0);]]
  [[]]
  --focus creating --processors 2)

# A time-out is armed before anybody can end the wait.
sim_mistake(armed_late pthread/recycle.cc 30000
  [[uint64_t word = sched::begin_wait_until(t, &a->processor->timers, deadline);]]
  [[uint64_t word = sched::begin_wait(t);
  if (deadline != sched::never) {
    t->timers = &a->processor->timers;
    t->deadline = deadline;
    t->timers->add(t, deadline, word);
  }]]
  --focus creating --processors 2)

# The thief's side of the ready queue's lock.
sim_mistake(steal_fence sched/ready_queue.h 12000
  [[q_.revoked_.store(1, relaxed);
      heavy_fence();]]
  [[q_.revoked_.store(1, relaxed);]]
  --focus creating --processors 3)

# An upcall is numbered before the step that makes it true.
sim_mistake(numbered_late activation/activation.cc 2000
  [[Event e = blocked ? blocked_event(p, blocked) : new_event(Upcall::add_processor, p->index, a->index, 0);
  uint64_t since = blocked ? blocked->blocked_at.load(relaxed) : 0;
  // acq_rel: pairs with enter_kernel's exchange; the processor's private data is ours from here.
  if (!p->owner.compare_exchange_strong(w.bits, w.next(Owner::running, a->index).bits, acq_rel, relaxed))
    return false;
  count_awake(p);
  uint64_t woken = a->woken_at.load(relaxed);
  if (woken > since) since = woken;
  if (blocked && g_measuring) p->taken_over = since ? since : arch::tsc();
  a->woken_at.store(0, relaxed);
  deliver(e);]]
  [[uint64_t since = blocked ? blocked->blocked_at.load(relaxed) : 0;
  // acq_rel: pairs with enter_kernel's exchange; the processor's private data is ours from here.
  if (!p->owner.compare_exchange_strong(w.bits, w.next(Owner::running, a->index).bits, acq_rel, relaxed))
    return false;
  count_awake(p);
  uint64_t woken = a->woken_at.load(relaxed);
  if (woken > since) since = woken;
  if (blocked && g_measuring) p->taken_over = since ? since : arch::tsc();
  a->woken_at.store(0, relaxed);
  Event e = blocked ? blocked_event(p, blocked) : new_event(Upcall::add_processor, p->index, a->index, 0);
  deliver(e);]])

# Who leaves the reserved signal's handler without returning from it opens the signal again.
sim_mistake(preempted_deaf activation/preempt.cc 500
  [[unblock_preempt_signal();
  t->fs]]
  [[t->fs]])
sim_mistake(surrendered_deaf activation/detach.cc 8000
  [[unblock_preempt_signal();]]
  [[]])
