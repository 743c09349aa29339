#include "linux/patch/object.h"

#include "base/log.h"
#include "linux/patch/scan.h"

namespace upcall::patch {
namespace {

constexpr size_t kMaxFunction = 8u << 20;

const uint8_t* memory(uintptr_t address) { return reinterpret_cast<const uint8_t*>(address); }

int32_t load4(const uint8_t* p) {
  int32_t v;
  __builtin_memcpy(&v, p, 4);
  return v;
}

// The number that the bytes right before a candidate suggest, without a decode: good enough to put off a
// site, not to leave it alone for good. A byte before that could make them the tail of a longer
// instruction (REX, or an opcode whose ModRM byte is b8) spoils the suggestion.
long suggested_number(uintptr_t address, uintptr_t lowest) {
  const uint8_t* p = memory(address);
  if (address < lowest + 8) return -1;
  if (p[-5] == 0xb8) {
    uint8_t before = p[-6];
    bool tail = (before & 0xf0) == 0x40 || before == 0x8b || before == 0x89 || before == 0x8d ||
                before == 0x66 || (before >= 0x80 && before <= 0x8f) || before == 0xc7 || before == 0x0f ||
                before < 0x40;
    if (!tail) return load4(p - 4);
    if (before == 0x00 || (before & 0xf8) == 0xf8) return load4(p - 4);
  }
  if (p[-7] == 0x48 && p[-6] == 0xc7 && p[-5] == 0xc0) return load4(p - 4);
  return -1;
}

// What makes threads, and what maps and protects their stacks: the first stack exists before the first clone. And
// signalfd: the signals it reads must stay with the kernel.
bool needed_early(long nr) {
  return nr == __NR_clone || nr == __NR_clone3 || nr == __NR_mmap || nr == __NR_munmap ||
         nr == __NR_mprotect || nr == __NR_madvise || nr == __NR_signalfd4;
}

bool restorer(uintptr_t address, uintptr_t lowest) {
  const uint8_t* p = memory(address);
  if (address < lowest + 7 || load4(p - 4) != __NR_rt_sigreturn) return false;
  return p[-5] == 0xb8 || (p[-7] == 0x48 && p[-6] == 0xc7 && p[-5] == 0xc0);
}

// Whoever runs here meanwhile sees either the old instruction, or itself, or the new one.
void write_code(uintptr_t at, const uint8_t* code, size_t n) {
  uint8_t* p = reinterpret_cast<uint8_t*>(at);
  uintptr_t word = at & ~7ul;
  if (at + n <= word + 8) {
    uint64_t v;
    __builtin_memcpy(&v, reinterpret_cast<void*>(word), 8);
    __builtin_memcpy(reinterpret_cast<uint8_t*>(&v) + (at - word), code, n);
    __atomic_store_n(reinterpret_cast<uint64_t*>(word), v, __ATOMIC_RELEASE);
    return;
  }
  auto put = [](uint8_t* where, uint8_t what) { __atomic_store_n(where, what, __ATOMIC_RELEASE); };
  put(p + 1, 0xfe);
  put(p, 0xeb);
  for (size_t i = 2; i < n; ++i) put(p + i, code[i]);
  put(p, code[0]);
  put(p + 1, code[1]);
}

}  // namespace

bool Object::jumps_in_place() const {
  for (const Edit& e : edits)
    if (__builtin_memcmp(memory(e.address), e.original, e.length) == 0) return false;
  return !edits.empty();
}

void Object::release(bool with_stubs) {
  sites.release();
  edits.release();
  far.release();
  for (unsigned i = 0; with_stubs && i < area_count; ++i) area_remove(areas[i]);
  area_count = 0;
}

void Workspace::release() {
  flow.release();
  bytes.release();
  addresses.release();
  plans.release();
}

void Patcher::run(int fd, Maps* maps) {
  bool first = object_.sites.empty();
  if (!open(fd, maps)) {
    object_.complete = true;
    if (log_on(Topic::patch))
      (Line() << "patch: " << object_.name << ": no ELF object that can be read; left alone").write();
    return;
  }
  if (first) find_candidates();
  ws_.plans.clear();
  for (size_t i = 0; i < object_.sites.size(); ++i)
    if (relevant(object_.sites[i])) examine(i);
  if (!unsure_.empty()) {
    look_for_entries();
    loaded_ = false;
    for (size_t i = 0; i < object_.sites.size(); ++i)
      if (relevant(object_.sites[i]) && !planned(i)) examine(i);
  }
  if (!ws_.plans.empty()) apply(maps);
  object_.complete = phase_ == Phase::all || object_.sites.empty();
  if (object_.complete) object_.far.release();
  image_.close();
  jumps_.release();
  unsure_.release();
  entries_.release();
}

bool Patcher::open(int fd, Maps* maps) {
  Mapping m{object_.start, object_.end, object_.offset, object_.device, object_.inode, 0, object_.prot};
  if (!image_.open(m, object_.name, fd, maps)) return false;
  object_.bias = image_.bias();
  return true;
}

// The parts of executable sections that are mapped here, in memory.
template <typename Visit>
void Patcher::each_code_range(Visit visit) const {
  for (unsigned i = 0; i < image_.code_count(); ++i) {
    uintptr_t lo = image_.code()[i].lo + image_.bias(), hi = image_.code()[i].hi + image_.bias();
    if (lo < object_.start) lo = object_.start;
    if (hi > object_.end) hi = object_.end;
    if (lo < hi) visit(memory(lo), memory(hi));
  }
}

void Patcher::find_candidates() {
  ws_.addresses.clear();
  each_code_range(
      [this](const uint8_t* lo, const uint8_t* hi) { find_syscall_bytes(lo, hi, &ws_.addresses); });
  object_.code = {~0ul, 0};
  each_code_range([this](const uint8_t* lo, const uint8_t* hi) {
    if (reinterpret_cast<uintptr_t>(lo) < object_.code.lo) object_.code.lo = reinterpret_cast<uintptr_t>(lo);
    if (reinterpret_cast<uintptr_t>(hi) > object_.code.hi) object_.code.hi = reinterpret_cast<uintptr_t>(hi);
  });
  for (uintptr_t a : ws_.addresses) object_.sites.push({a, nullptr, -1, State::deferred});
}

bool Patcher::relevant(const Site& site) const {
  if (site.state != State::deferred) return false;
  if (phase_ == Phase::all) return true;
  long nr = site.nr >= 0 ? site.nr : suggested_number(site.address, object_.start);
  return nr < 0 || needed_early(nr);
}

// For all candidates at once: a later phase uses the result again.
void Patcher::collect_far_branches() {
  if (object_.far_known) return;
  object_.far_known = true;
  Vec<Range> around;
  for (const Site& s : object_.sites) around.push({s.address - kNearby, s.address + kNearby});
  Vec<uintptr_t>& far = object_.far;
  NearMap near_sites(around, {object_.start, object_.end});
  around.release();
  each_code_range([&](const uint8_t* lo, const uint8_t* hi) { find_far_jumps(lo, hi, near_sites, &far); });
  // Assembly gives names to places inside functions, to be entered there.
  image_.for_each_code_symbol([&](uintptr_t value, uintptr_t, bool) {
    if (near_sites.test(value + image_.bias())) far.push(value + image_.bias());
  });
  near_sites.release();
  sort(far.begin(), far.size());
}

// Puts the function around `vaddr` into the workspace; false (and the site settled) if there is none.
bool Patcher::load_function(uintptr_t vaddr, Site* site) {
  if (loaded_ && ws_.flow.function().start <= vaddr && vaddr < ws_.flow.function().next) return true;
  Function f{};
  auto settle = [&](State state, const char* reason) {
    site->state = state;
    site->reason = reason;
    return false;
  };
  if (!image_.find_function(vaddr, &f) || f.start > vaddr || f.next <= vaddr)
    return settle(State::not_code, "outside all functions");
  if (f.next - f.start > kMaxFunction) return settle(State::not_code, "function too large to decode");
  uintptr_t base = f.start + image_.bias();
  size_t size = f.next - f.start;
  if (base < object_.start || base + size > object_.end)
    return settle(State::not_code, "function is not mapped here");
  loaded_ = false;
  ws_.bytes.resize(size);
  __builtin_memcpy(ws_.bytes.begin(), memory(base), size);
  for (const Edit& e : object_.edits)
    if (e.address >= base && e.address + e.length <= base + size)
      __builtin_memcpy(ws_.bytes.begin() + (e.address - base), e.original, e.length);
  if (!image_.trusted()) {
    const uint8_t* file = image_.at(f.start, size);
    if (!file || __builtin_memcmp(file, ws_.bytes.begin(), size) != 0)
      return settle(State::not_code, "memory differs from the file");
  }
  ws_.flow.analyse(f, ws_.bytes.begin(), image_);
  for (const Workspace::Plan& p : ws_.plans)
    if (p.base == base) take(p.placement);
  for (const Edit& e : object_.edits)
    if (e.address >= base && e.address + e.length <= base + size)
      ws_.flow.take(static_cast<uint32_t>(e.address - base),
                    static_cast<uint32_t>(e.address - base + e.length));
  loaded_ = true;
  swept_ = false;
  return true;
}

// Ways into functions from elsewhere (calls, jumps between the parts of a split function, symbols), for all
// functions with postponed sites at once: it takes a look at all code of the object.
void Patcher::look_for_entries() {
  looked_ = true;
  Range all = {~0ul, 0};
  for (const Range& f : unsure_) {
    if (f.lo < all.lo) all.lo = f.lo;
    if (f.hi > all.hi) all.hi = f.hi;
  }
  NearMap blocks(unsure_, all);
  each_code_range(
      [&](const uint8_t* lo, const uint8_t* hi) { find_far_branches(lo, hi, blocks, &entries_); });
  image_.for_each_code_symbol([&](uintptr_t value, uintptr_t, bool) {
    if (blocks.test(value + image_.bias())) entries_.push(value + image_.bias());
  });
  blocks.release();
  sort(entries_.begin(), entries_.size());
}

// Null: no instruction begins there, or (postponed) it is not yet known whether one does.
const Insn* Patcher::confirm(uint32_t offset, bool* postponed) {
  Flow& flow = ws_.flow;
  *postponed = false;
  if (flow.known(offset) || flow.ruled_out(offset)) return flow.at(offset);
  uintptr_t base = flow.function().start + image_.bias(), end = flow.function().next + image_.bias();
  if (!looked_) {
    unsure_.push({base, end});
    *postponed = true;
    return nullptr;
  }
  for (size_t i = lower_bound(entries_.begin(), entries_.size(), base);
       i < entries_.size() && entries_[i] < end; ++i)
    if (!flow.inside_insn(static_cast<uint32_t>(entries_[i] - base)))
      flow.add_entry(entries_[i] - image_.bias());
  if (!flow.known(offset) && flow.has_hidden_entries() && !swept_) {
    flow.sweep();
    swept_ = true;
  }
  return flow.at(offset);
}

void Patcher::examine(size_t index) {
  Site& site = object_.sites[index];
  uintptr_t vaddr = site.address - image_.bias();
  if (!load_function(vaddr, &site)) return;
  Flow& flow = ws_.flow;
  uint32_t offset = static_cast<uint32_t>(vaddr - flow.function().start);
  bool postponed;
  const Insn* insn = confirm(offset, &postponed);
  if (postponed) return;
  if (!insn || insn->kind != Kind::syscall) {
    site.state = State::not_code;
    site.reason = insn || flow.inside_insn(offset) || flow.ruled_out(offset)
                      ? "part of another instruction"
                      : "no flow of control reaches it";
    return;
  }
  collect_far_branches();  // most objects have false candidates only, and are never scanned for these
  uintptr_t base = flow.function().start + image_.bias();
  long nr = constant_number(flow, *insn, object_.far, base);
  if (nr > INT16_MAX) nr = -1;
  site.nr = static_cast<int16_t>(nr < 0 ? -1 : nr);
  if (nr == __NR_rt_sigreturn || restorer(site.address, object_.start) || (nr >= 0 && !config_.wants(nr))) {
    site.state = State::left_plain;
    return;
  }
  if (phase_ == Phase::thread_creation && nr >= 0 && !needed_early(nr)) return;
  Workspace::Plan plan{index, base, {}};
  Insn found = *insn;
  const char* why = place(flow, found, object_.far, base, &plan.placement);
  if (why) why = try_hop(found, base, &plan.placement);
  if (why) {
    site.state = State::unpatched;
    site.reason = why;
    return;
  }
  take(plan.placement);
  ws_.plans.push(plan);
}

bool Patcher::planned(size_t site) const {
  for (const Workspace::Plan& p : ws_.plans)
    if (p.site == site) return true;
  return false;
}

// These bytes of the loaded function are no longer free.
void Patcher::take(const Placement& p) {
  ws_.flow.take(p.window.lo, p.window.hi);
  if (p.evicted.count)
    ws_.flow.take(p.evicted.lo, p.evicted.hi);
  else if (p.hop)
    ws_.flow.take(p.hop_at, p.hop_at + kJump);
}

// Few sites come to this: where branches land around them is looked up for each.
const char* Patcher::try_hop(const Insn& site, uintptr_t base, Placement* out) {
  Vec<uintptr_t> far;
  Range around = {base + site.offset - kHopReach, base + site.end() + kHopReach};
  each_code_range([&](const uint8_t* lo, const uint8_t* hi) { find_branches_into(lo, hi, around, &far); });
  image_.for_each_code_symbol([&](uintptr_t value, uintptr_t, bool) {
    if (around.contains(value + image_.bias())) far.push(value + image_.bias());
  });
  sort(far.begin(), far.size());
  const char* why = place_hop(ws_.flow, site, far, base, out);
  far.release();
  return why;
}

void Patcher::give_up(const char* reason) {
  for (const Workspace::Plan& p : ws_.plans) {
    object_.sites[p.site].state = State::unpatched;
    object_.sites[p.site].reason = reason;
  }
}

void Patcher::apply(Maps* maps) {
  Maps own;
  bool read = false;
  if (!maps || maps->all().empty()) {
    maps = maps ? maps : &own;
    read = maps == &own;
    maps->read();
  }
  StubWriter writer;
  const char* failure =
      object_.area_count == Object::kMaxAreas ? "too many stub areas" : write_stubs(maps, &writer);
  if (!failure && !jumps_.empty()) {
    failure = writer.seal();
    if (!failure && !write_jumps(writer)) {
      area_remove(writer.start());
      failure = "its pages may not be made writable";
    }
  }
  if (failure) give_up(failure);
  if (read) own.release();
}

// What stood there: functions are decoded again in a later phase.
void Patcher::remember(Range given) {
  Edit edit{given.lo, static_cast<uint8_t>(given.hi - given.lo), {}};
  __builtin_memcpy(edit.original, memory(given.lo), given.hi - given.lo);
  object_.edits.push(edit);
}

const char* Patcher::write_stubs(Maps* maps, StubWriter* writer) {
  size_t bytes = 0, records = 0;
  for (const Workspace::Plan& p : ws_.plans) {
    bytes += stub_bound(p.placement.window.hi - p.placement.window.lo, p.placement.window.count);
    ++records;
    if (!p.placement.evicted.count) continue;
    bytes += stub_bound(p.placement.evicted.hi - p.placement.evicted.lo, p.placement.evicted.count);
    ++records;
  }
  Range all = image_.extent();
  if (const char* failure =
          writer->open(*maps, all.lo + image_.bias(), all.hi + image_.bias(), bytes, records, config_.entry))
    return failure;
  jumps_.clear();
  for (const Workspace::Plan& p : ws_.plans) {
    Site& site = object_.sites[p.site];
    const Window& w = p.placement.window;
    const uint8_t* code = memory(p.base);
    Insn insn{};
    for (unsigned i = 0; i < w.count; ++i)
      if (w.moved[i].kind == Kind::syscall) insn = w.moved[i];
    uintptr_t stub = writer->emit(w, code, p.base, &insn);
    uintptr_t evicted = 0;
    if (stub && p.placement.evicted.count) evicted = writer->emit(p.placement.evicted, code, p.base, nullptr);
    if (!stub || (p.placement.evicted.count && !evicted)) {
      site.state = State::unpatched;
      site.reason = "an operand of a moved instruction is out of reach";
      continue;
    }
    // What a jump leads to is in place before the jump itself.
    if (evicted) jumps_.push({p.base + p.placement.evicted.lo, evicted, kJump, false});
    if (p.placement.hop) {
      jumps_.push({p.base + p.placement.hop_at, stub, kJump, false});
      jumps_.push({p.base + w.lo, p.base + p.placement.hop_at, kShortJump, true});
    } else {
      jumps_.push({p.base + w.lo, stub, kJump, false});
    }
    remember({p.base + w.lo, p.base + w.hi});
    if (p.placement.evicted.count)
      remember({p.base + p.placement.evicted.lo, p.base + p.placement.evicted.hi});
    else if (p.placement.hop)
      remember({p.base + p.placement.hop_at, p.base + p.placement.hop_at + kJump});
    site.state = State::patched;
  }
  if (jumps_.empty()) writer->abandon();
  return nullptr;
}

bool Patcher::write_jumps(const StubWriter& writer) {
  size_t length = object_.end - object_.start;
  // Writable and executable together: other kernel threads may pass through, and where that is forbidden (PR_SET_MDWE, a
  // filter) what is no longer executable would not become so again.
  long r = kernel::sys(__NR_mprotect, object_.start, length, kRead | kWrite | kExec);
  bool ok = !kernel::is_error(r);
  for (size_t i = 0; ok && i < jumps_.size(); ++i) {
    const Jump& j = jumps_[i];
    uint8_t code[kJump] = {0xe9};
    if (j.is_short) {
      code[0] = 0xeb;
      code[1] = static_cast<uint8_t>(j.to - (j.at + kShortJump));
    } else {
      int32_t d = static_cast<int32_t>(j.to - (j.at + kJump));
      __builtin_memcpy(code + 1, &d, 4);
    }
    write_code(j.at, code, j.length);
  }
  if (ok) {
    CHECK(!kernel::is_error(kernel::sys(__NR_mprotect, object_.start, length, object_.prot)));
    object_.areas[object_.area_count++] = writer.start();
    object_.stub_bytes += writer.used();
  }
  return ok;
}

}  // namespace upcall::patch
