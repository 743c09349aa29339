// The ring never holds a request when a function returns: a request that has to wait is called off in the same system call, which
// for connect(2) ends the wait and not the attempt (io_uring/net.c: the first try is made as on an O_NONBLOCK socket, and only
// then the request begins to wait).
#include "event/ring.h"

#include <linux/io_uring.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/syscall.h"
#include "event/numbers.h"
#include "kernel/memory.h"

namespace upcall::event {

namespace {

constexpr long e_intr = 4, e_again = 11, e_nosys = 38, e_inprogress = 115, e_canceled = 125;
constexpr uint32_t room = 2;

struct Ring {
  char* memory = nullptr;
  size_t bytes = 0;
  io_uring_sqe* requests = nullptr;
  uint32_t *head, *tail, *mask, *array;                   // of what is submitted
  uint32_t *answered_head, *answered_tail, *answer_mask;  // of answers
  io_uring_cqe* answers;
};
// Guarded by g_busy.
Ring g_ring;
// Not again once it was refused, by the kernel, a limit or a filter.
atomic<bool> g_refused{false};
// Who finds it taken does without: its owner is in the kernel.
atomic<uint32_t> g_busy{0};

constexpr size_t request_bytes = room * sizeof(io_uring_sqe);

// The kernel reads and writes these words.
uint32_t load(const uint32_t* word) noexcept { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
void store(uint32_t* word, uint32_t value) noexcept { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

void* map(int fd, size_t bytes, uint64_t offset) noexcept {
  long r =
      kernel::sys(__NR_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
  return kernel::is_error(r) ? nullptr : reinterpret_cast<void*>(r);
}

void unmap(Ring* r) noexcept {
  if (r->memory) kernel::unmap_pages(r->memory, r->bytes);
  if (r->requests) kernel::unmap_pages(r->requests, request_bytes);
  *r = {};
}

bool map_all(int fd, const io_uring_params& p) noexcept {
  Ring& r = g_ring;
  size_t submitted = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
  size_t answered = p.cq_off.cqes + p.cq_entries * sizeof(io_uring_cqe);
  r.bytes = submitted > answered ? submitted : answered;
  r.memory = static_cast<char*>(map(fd, r.bytes, IORING_OFF_SQ_RING));
  r.requests = static_cast<io_uring_sqe*>(map(fd, request_bytes, IORING_OFF_SQES));
  if (!r.memory || !r.requests) return false;
  const auto word = [at = r.memory](uint32_t offset) { return reinterpret_cast<uint32_t*>(at + offset); };
  r.head = word(p.sq_off.head), r.tail = word(p.sq_off.tail);
  r.mask = word(p.sq_off.ring_mask), r.array = word(p.sq_off.array);
  r.answered_head = word(p.cq_off.head), r.answered_tail = word(p.cq_off.tail);
  r.answer_mask = word(p.cq_off.ring_mask);
  r.answers = reinterpret_cast<io_uring_cqe*>(r.memory + p.cq_off.cqes);
  return true;
}

// A filter from before the program began.
bool is_filtered() noexcept {
  constexpr int get_seccomp = 21;
  return kernel::sys(__NR_prctl, get_seccomp, 0, 0, 0, 0) != 0;
}

int instance() noexcept {
  if (g_refused.load(relaxed)) return none;
  if (int known = number_of(Own::ring); known != none) return known;
  g_refused.store(true, relaxed);
  if (is_filtered()) return none;
  io_uring_params p = {};
  long made = kernel::sys(__NR_io_uring_setup, room, static_cast<void*>(&p));
  if (kernel::is_error(made)) return none;
  int fd = static_cast<int>(made);
  constexpr uint32_t needed = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL;
  if ((p.features & needed) != needed || !map_all(fd, p)) {
    unmap(&g_ring);
    kernel::sys(__NR_close, fd);
    return none;
  }
  g_refused.store(false, relaxed);
  return keep(Own::ring, fd);
}

void put(const io_uring_sqe& request) noexcept {
  uint32_t at = *g_ring.tail, slot = at & *g_ring.mask;
  g_ring.requests[slot] = request;
  g_ring.array[slot] = slot;
  store(g_ring.tail, at + 1);
}

uint32_t not_taken() noexcept { return *g_ring.tail - load(g_ring.head); }
uint32_t answers() noexcept { return load(g_ring.answered_tail) - *g_ring.answered_head; }

// False: the kernel does not take them (any more).
bool submit_and_wait(int fd) noexcept {
  while (answers() < room) {
    long r =
        kernel::sys(__NR_io_uring_enter, fd, not_taken(), room - answers(), IORING_ENTER_GETEVENTS, 0, 0);
    if (r < 0 && r != -e_intr && r != -e_again) return false;
  }
  return true;
}

// The answer to the request with this mark.
long take_answers(uint64_t mark) noexcept {
  long found = -e_canceled;
  for (uint32_t i = *g_ring.answered_head; i != load(g_ring.answered_tail); ++i) {
    const io_uring_cqe& c = g_ring.answers[i & *g_ring.answer_mask];
    if (c.user_data == mark) found = c.res;
    store(g_ring.answered_head, i + 1);
  }
  return found;
}

long connect_and_call_off(int socket, uint64_t address, uint32_t length) noexcept {
  constexpr uint64_t mark = 1;
  int fd = instance();
  if (fd == none) return -e_nosys;
  io_uring_sqe connect = {}, call_off = {};
  connect.opcode = IORING_OP_CONNECT;
  connect.fd = socket;
  connect.addr = address;
  connect.off = length;
  connect.user_data = mark;
  call_off.opcode = IORING_OP_ASYNC_CANCEL;
  call_off.fd = none;
  call_off.addr = mark;
  put(connect);
  put(call_off);
  if (!submit_and_wait(fd)) {
    bool begun = not_taken() < room;
    unmap(&g_ring);
    close_own(Own::ring);
    refuse_ring();
    return begun ? -e_inprogress : -e_nosys;
  }
  long r = take_answers(mark);
  return r == -e_canceled || r == -e_again || r == -e_intr ? -e_inprogress : r;
}

}  // namespace

long try_connect(int socket, uint64_t address, uint32_t length) noexcept {
  if (g_busy.exchange(1, acquire)) return -e_nosys;  // pairs with the store below
  long r = connect_and_call_off(socket, address, length);
  g_busy.store(0, release);
  return r;
}

void refuse_ring() noexcept { g_refused.store(true, relaxed); }

void forget_ring() noexcept {
  unmap(&g_ring);
  close_own(Own::ring);
  g_busy.store(0, relaxed);
}

}  // namespace upcall::event
