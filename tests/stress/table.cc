#include <fcntl.h>
#include <sys/mman.h>

#include "stress.h"

namespace upcall::test {

Table* table = nullptr;
constinit thread_local Slot* own_slot = nullptr;

namespace {

const char* const kNames[] = {"free",
                              "starting",
                              "computing",
                              "yielding",
                              "sleeping",
                              "mutex",
                              "condition",
                              "semaphore",
                              "futex lock",
                              "futex wait",
                              "read lock",
                              "write lock",
                              "pipe read",
                              "pipe write",
                              "creating a thread",
                              "joining",
                              "joining slot",
                              "signalling",
                              "allocating",
                              "waiting to be cancelled",
                              "ending",
                              "ended",
                              "waiting for a signal",
                              "changing its mask",
                              "in sigsuspend",
                              "waiting to jump",
                              "forking",
                              "spawning",
                              "waiting for a child"};
static_assert(std::size(kNames) == static_cast<size_t>(Op::kCount));

void map_table(const char* path, bool create) {
  int file = -1;
  if (path != nullptr) {
    file = open(path, create ? O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    if (create) CHECK_EQ(ftruncate(file, sizeof(Table)), 0);
  }
  void* memory = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE,
                      file >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, file, 0);
  CHECK(memory != MAP_FAILED);
  if (file >= 0) close(file);
  table = static_cast<Table*>(memory);
}

int owner_of(const Table& shown, ObjectKind kind, int object) {
  return shown.owner[static_cast<int>(kind)][object].load(std::memory_order_relaxed) - 1;
}

}  // namespace

int slot_index(const Slot* slot) { return static_cast<int>(slot - table->slots); }

void enter_slot(int index) {
  CHECK(index >= 0 && index < Table::kSlots);
  own_slot = &table->slots[index];
  own_slot->tid = gettid();
  own_slot->op = Op::kComputing;
  own_slot->object = -1;
  own_slot->since_ns = now_ns();
}

void show(const Table& shown) {
  const int64_t now = now_ns();
  dprintf(2, "seed %llu; what each thread was doing, by the test's own account:\n",
          static_cast<unsigned long long>(shown.seed));
  for (int i = 0; i < Table::kSlots; ++i) {
    const Slot& slot = shown.slots[i];
    const Op op = slot.op;
    if (op == Op::kNone) continue;
    const int object = slot.object;
    dprintf(2, "  slot %d generation %u tid %d: %s", i, slot.generation.load(), slot.tid.load(),
            kNames[static_cast<int>(op)]);
    if (object >= 0) dprintf(2, " %d", object);
    dprintf(2, " for %.3f s, %llu operations", static_cast<double>(now - slot.since_ns) / 1e9,
            static_cast<unsigned long long>(slot.operations.load()));
    int holder = -1;
    if (object >= 0 && object < Table::kObjects) {
      if (op == Op::kMutex || op == Op::kCondition) holder = owner_of(shown, ObjectKind::kMutex, object);
      if (op == Op::kFutexLock) holder = owner_of(shown, ObjectKind::kFutexLock, object);
      if (op == Op::kReadLock || op == Op::kWriteLock) holder = owner_of(shown, ObjectKind::kRwLock, object);
    }
    if (holder >= 0) dprintf(2, ", held by slot %d%s", holder, holder == i ? " (itself)" : "");
    dprintf(2, "\n");
  }
}

Options begin(int count, char** arguments) {
  Options options;
  const char* path = nullptr;
  bool only_show = false;
  options.seed = static_cast<uint64_t>(now_ns(CLOCK_REALTIME)) % 1'000'000'000;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    const char* value = i + 1 < count ? arguments[++i] : nullptr;
    if (value == nullptr) FAIL("%s needs a value", name.c_str());
    if (name == "--seconds")
      options.seconds = atof(value);
    else if (name == "--seed")
      options.seed = strtoull(value, nullptr, 10);
    else if (name == "--threads")
      options.threads = atoi(value);
    else if (name == "--table")
      path = value;
    else if (name == "--show")
      path = value, only_show = true;
    else
      FAIL("unknown option %s", name.c_str());
  }
  map_table(path, !only_show);
  if (only_show) {
    if (table->magic != Table::kMagic) FAIL("%s is no table", path);
    show(*table);
    _exit(0);
  }
  table->magic = Table::kMagic;
  table->seed = options.seed;
  dprintf(1, "seed %llu, %.1f seconds\n", static_cast<unsigned long long>(options.seed), options.seconds);
  return options;
}

}  // namespace upcall::test
