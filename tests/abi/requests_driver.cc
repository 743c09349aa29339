// abi: threads=8 counters=driver_refusals:4
// Drivers of the program: every way to look at requests, order, a full device, deadlines, and drivers that fail or answer
// nonsense (upcall/event.h).
#include "requests.h"

#include <unistd.h>

namespace {

// A device that has done a request some polls after it got it.
struct Device {
  int takes = 2;       // polls that a request takes
  int room = 1 << 20;  // more are refused with EAGAIN
  int inside = 0;
  std::atomic<int> concurrent{0};
  std::vector<upcall_request*> has;
  std::vector<long> order;
  void enter() { CHECK_EQ(concurrent.fetch_add(1), 0); }
  void leave() { concurrent = 0; }
};

int submit(void* context, upcall_request* r) {
  auto* d = static_cast<Device*>(context);
  d->enter();
  int error = 0;
  if (d->inside >= d->room) {
    error = EAGAIN;
  } else if (reinterpret_cast<long>(r->data) < 0) {
    error = EPROTO;
  } else {
    ++d->inside;
    r->device[0] = 0;
    d->order.push_back(reinterpret_cast<long>(r->data));
    d->has.push_back(r);
  }
  d->leave();
  return error;
}

int poll_one(void* context, upcall_request* r) {
  auto* d = static_cast<Device*>(context);
  d->enter();
  const bool done = ++r->device[0] >= static_cast<uint64_t>(d->takes);
  if (done) --d->inside, r->result = reinterpret_cast<long>(r->data);
  d->leave();
  return done;
}

int poll_group(void* context) {
  auto* d = static_cast<Device*>(context);
  d->enter();
  std::vector<upcall_request*> done;
  for (size_t i = 0; i < d->has.size();) {
    upcall_request* r = d->has[i];
    if (++r->device[0] < static_cast<uint64_t>(d->takes)) {
      ++i;
      continue;
    }
    done.push_back(r);
    d->has.erase(d->has.begin() + static_cast<long>(i));
    --d->inside;
  }
  d->leave();
  for (upcall_request* r : done) CHECK_EQ(upcall_complete(r, reinterpret_cast<long>(r->data)), 0);
  return 0;
}

int forget(void* context, upcall_request* r) {
  auto* d = static_cast<Device*>(context);
  for (size_t i = 0; i < d->has.size(); ++i)
    if (d->has[i] == r) {
      d->has.erase(d->has.begin() + static_cast<long>(i));
      --d->inside;
      return 0;
    }
  return EBUSY;
}

upcall_driver_ops ops_of(int (*one)(void*, upcall_request*), int (*group)(void*)) {
  upcall_driver_ops ops = {};
  ops.size = sizeof ops;
  ops.name = "test";
  ops.poll = one;
  ops.poll_group = group;
  return ops;
}

upcall_driver* made(const upcall_driver_ops& ops, void* context) {
  upcall_driver* d = nullptr;
  CHECK_EQ(upcall_driver_register(&d, &ops, context), 0);
  return d;
}

upcall_request with(long data, int priority = 0) {
  upcall_request r = {};
  r.data = reinterpret_cast<void*>(data);
  r.priority = priority;
  return r;
}

void refused_registrations() {
  upcall_driver* d = nullptr;
  upcall_driver_ops ops = ops_of(nullptr, nullptr);
  CHECK_EQ(upcall_driver_register(&d, &ops, nullptr), EINVAL);
  ops = ops_of(poll_one, nullptr);
  ops.size = 8;
  CHECK_EQ(upcall_driver_register(&d, &ops, nullptr), EINVAL);
  ops = ops_of(poll_one, nullptr);
  ops.wait_group = [](void*, uint64_t) { return 0; };
  CHECK_EQ(upcall_driver_register(&d, &ops, nullptr), EINVAL);
}

// Many threads, many requests: each answered with its own data.
void many(bool group, uint32_t depth, uint32_t flags) {
  Device device;
  upcall_driver_ops ops = ops_of(group ? nullptr : poll_one, group ? poll_group : nullptr);
  ops.submit = submit;
  ops.depth = depth;
  ops.flags = flags;
  if (!group)
    ops.submit = [](void* context, upcall_request* r) {
      const int error = submit(context, r);
      static_cast<Device*>(context)->has.clear();
      return error;
    };
  upcall_driver* d = made(ops, &device);
  std::vector<pthread_t> threads;
  for (long t = 0; t < 4; ++t)
    threads.push_back(start([=] {
      for (long i = 0; i < 200; ++i) {
        upcall_request r = with(t * 1000 + i, static_cast<int>(i % 3));
        CHECK_EQ(upcall_submit(d, &r), 0);
        CHECK_EQ(upcall_wait(&r, UPCALL_FOREVER), 0);
        CHECK_EQ(r.result, t * 1000 + i);
      }
    }));
  join_all(threads);
  CHECK_EQ(device.order.size(), 800);
  CHECK_EQ(upcall_driver_unregister(d), 0);
}

// A device for one at a time gets the others by priority, then by age.
void order(bool by_depth) {
  Device device;
  device.takes = 200;
  upcall_driver_ops ops = ops_of(nullptr, poll_group);
  ops.submit = submit;
  ops.cancel = forget;
  if (by_depth)
    ops.depth = 1;
  else
    device.room = 1;
  upcall_driver* d = made(ops, &device);
  upcall_request r[6] = {with(0), with(1, 1), with(2, 2), with(3, 1), with(4, 2), with(5, 9)};
  // Whoever has the first one's place delays the rest.
  for (auto& one : r) CHECK_EQ(upcall_submit(d, &one), 0);
  CHECK_EQ(upcall_driver_unregister(d), EBUSY);
  CHECK_EQ(upcall_cancel(&r[5]), 0);  // still in the queue, or in the device: forgotten
  CHECK_EQ(r[5].result, -ECANCELED);
  for (int i = 0; i < 5; ++i) CHECK_EQ(upcall_wait(&r[i], UPCALL_FOREVER), 0);
  std::vector<long> seen;
  for (const long one : device.order)
    if (one != 0 && one != 5) seen.push_back(one);
  CHECK(seen == (std::vector<long>{2, 4, 1, 3}));
  CHECK_EQ(upcall_driver_unregister(d), 0);
}

void failures() {
  Device device;
  upcall_driver_ops ops = ops_of(nullptr, nullptr);
  // A request that the device refuses; a poll that fails; one that answers nonsense; a group that fails.
  ops.poll = [](void*, upcall_request* r) { return static_cast<int>(reinterpret_cast<long>(r->data)); };
  ops.submit = [](void* context, upcall_request* r) {
    const int error = submit(context, r);
    static_cast<Device*>(context)->has.clear();
    static_cast<Device*>(context)->inside = 0;
    return error;
  };
  upcall_driver* d = made(ops, &device);
  upcall_request refused = with(-1), nonsense = with(7);
  CHECK_EQ(upcall_submit(d, &refused), 0);
  CHECK_EQ(upcall_wait(&refused, UPCALL_FOREVER), 0);
  CHECK_EQ(refused.result, -EPROTO);
  CHECK_EQ(upcall_submit(d, &nonsense), 0);
  CHECK_EQ(upcall_wait(&nonsense, UPCALL_FOREVER), 0);
  CHECK_EQ(nonsense.result, -EIO);
  upcall_request timed = with(0);
  timed.deadline = upcall_now() + 1000;
  CHECK_EQ(upcall_submit(d, &timed), ENOTSUP);  // handed to a device that cannot forget it
  CHECK_EQ(upcall_driver_unregister(d), 0);

  ops = ops_of(nullptr, [](void*) { return -ENODEV; });
  d = made(ops, nullptr);
  upcall_request r = with(0);
  CHECK_EQ(upcall_submit(d, &r), 0);
  CHECK_EQ(upcall_wait(&r, UPCALL_FOREVER), 0);
  CHECK_EQ(r.result, -ENODEV);
  CHECK_EQ(upcall_driver_unregister(d), 0);

  ops = ops_of([](void*, upcall_request*) { return -EBADMSG; }, nullptr);
  d = made(ops, nullptr);
  CHECK_EQ(upcall_submit(d, &r), 0);
  CHECK_EQ(upcall_wait(&r, UPCALL_FOREVER), 0);
  CHECK_EQ(r.result, -EBADMSG);
  CHECK_EQ(upcall_driver_unregister(d), 0);
}

// The blocking call: fails, comes back at once for ever, or never comes back.
struct Blocking {
  int pipe[2];
  int answer;
  bool waits;
  std::atomic<int> ready{0}, calls{0};
};

int blocking_poll(void* context, upcall_request*) { return static_cast<Blocking*>(context)->ready; }

void blocking(int answer, bool waits) {
  Blocking b = {{-1, -1}, answer, waits};
  CHECK_EQ(pipe(b.pipe), 0);
  upcall_driver_ops ops = ops_of(blocking_poll, nullptr);
  ops.wait_group = [](void* context, uint64_t) {
    auto* it = static_cast<Blocking*>(context);
    ++it->calls;
    char byte;
    if (it->waits) CHECK_EQ(read(it->pipe[0], &byte, 1), 1);  // whatever the time-out says
    return it->answer;
  };
  ops.wake = [](void* context) { CHECK_EQ(write(static_cast<Blocking*>(context)->pipe[1], "w", 1), 1); };
  ops.typical = 1000;
  upcall_driver* d = made(ops, &b);
  upcall_request r = with(0), late = with(0);
  late.deadline = upcall_now() + 30 * kMs;
  CHECK_EQ(upcall_submit(d, &r), 0);
  CHECK_EQ(upcall_submit(d, &late), 0);
  for (int i = 0; !b.calls && i < 2000; ++i) nap(kMs);
  CHECK(b.calls > 0);
  CHECK_EQ(upcall_wait(&late, UPCALL_FOREVER), 0);
  CHECK_EQ(late.result, -ETIMEDOUT);
  CHECK_EQ(upcall_wait(&r, upcall_now() + 5 * kMs), ETIMEDOUT);
  b.ready = 1;
  if (waits) CHECK_EQ(write(b.pipe[1], "e", 1), 1);
  CHECK_EQ(upcall_wait(&r, UPCALL_FOREVER), 0);
  if (answer) CHECK_EQ(b.calls.load(), 1);
  CHECK_EQ(upcall_driver_unregister(d), 0);
  close(b.pipe[0]);
  close(b.pipe[1]);
}

// A device that has nothing and takes nothing is asked now and then, not all the time; nor is a driver kept by a call-back that
// submits again and again.
void stubborn() {
  static std::atomic<int> asked{0}, polled{0};
  static std::atomic<bool> over{false};
  upcall_driver_ops ops = ops_of(blocking_poll, nullptr);
  ops.submit = [](void*, upcall_request*) { return ++asked, over ? EPROTO : EAGAIN; };
  Blocking b = {{-1, -1}, 0, false};
  upcall_driver* d = made(ops, &b);
  upcall_request r = with(0);
  CHECK_EQ(upcall_submit(d, &r), 0);
  CHECK_EQ(upcall_wait(&r, upcall_now() + 50 * kMs), ETIMEDOUT);
  CHECK(asked > 1 && asked < 5000);
  over = true;
  CHECK_EQ(upcall_wait(&r, UPCALL_FOREVER), 0);
  CHECK_EQ(r.result, -EPROTO);
  CHECK_EQ(upcall_driver_unregister(d), 0);

  ops = ops_of([](void*, upcall_request* one) { return ++polled, one->data ? 0 : 1; }, nullptr);
  d = made(ops, nullptr);
  upcall_request again = with(0), limited = with(1);
  static upcall_driver* resubmitted_to;
  resubmitted_to = d;
  over = false;
  again.completed = [](upcall_request* one) {
    if (!over) CHECK_EQ(upcall_submit(resubmitted_to, one), 0);
  };
  limited.deadline = upcall_now() + 20 * kMs;
  CHECK_EQ(upcall_submit(d, &again), 0);
  CHECK_EQ(upcall_submit(d, &limited), 0);
  CHECK_EQ(upcall_wait(&limited, UPCALL_FOREVER), 0);
  CHECK_EQ(limited.result, -ETIMEDOUT);
  over = true;
  while (upcall_driver_unregister(d) == EBUSY) sched_yield();
}

void strategies() {
  static std::atomic<int> asked{0}, blocked{0};
  Blocking b = {{-1, -1}, 0, false};
  upcall_driver_ops ops = ops_of(blocking_poll, nullptr);
  ops.wait_group = [](void*, uint64_t) { return ++blocked, 0; };
  ops.wake = [](void*) {};
  ops.strategy = [](void*, const upcall_situation* s, upcall_action) {
    CHECK(s->pending <= 1 && s->poll_cost > 0);
    return ++asked % 2 ? UPCALL_SLEEP : static_cast<upcall_action>(77);  // nonsense: the usual one is taken
  };
  upcall_driver* d = made(ops, &b);
  upcall_request r = with(0);
  CHECK_EQ(upcall_submit(d, &r), 0);
  CHECK_EQ(upcall_wait(&r, upcall_now() + 20 * kMs), ETIMEDOUT);
  CHECK(asked > 2);
  b.ready = 1;
  CHECK_EQ(upcall_wait(&r, UPCALL_FOREVER), 0);
  CHECK_EQ(upcall_driver_unregister(d), 0);
}

}  // namespace

int main() {
  refused_registrations();
  many(false, 0, 0);
  many(true, 0, 0);
  many(true, 2, 0);
  many(true, 3, UPCALL_SUBMIT_LATER);
  order(true);
  order(false);
  failures();
  blocking(0, true);
  blocking(-ENOSYS, false);
  blocking(0, false);
  stubborn();
  strategies();
}
