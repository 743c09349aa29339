// One executable mapping of an object, and what was done to it.
#pragma once

#include <cstdint>

#include "linux/patch/elf_image.h"
#include "linux/patch/flow.h"
#include "linux/patch/maps.h"
#include "linux/patch/patch.h"
#include "linux/patch/place.h"
#include "linux/patch/stub.h"
#include "linux/patch/vec.h"

namespace upcall::patch {

enum class State : uint8_t {
  deferred,  // not examined, or of no use before Phase::all
  patched,
  left_plain,
  not_code,
  unpatched,
};

struct Site {
  uintptr_t address;
  const char* reason;  // of not_code and unpatched
  int16_t nr;
  State state;
};

// Bytes of the object that were given up to jumps: whole instructions.
struct Edit {
  uintptr_t address;
  uint8_t length;
  uint8_t original[kMaxWindow];
};

struct Object {
  uintptr_t start, end;
  uint64_t offset, device, inode;
  uint8_t prot;
  bool complete;  // nothing is deferred
  uintptr_t bias;
  Range code;  // from the first to the last byte of executable sections that is mapped here
  Vec<Site> sites;
  Vec<Edit> edits;
  bool far_known;
  Vec<uintptr_t> far;  // where branches from anywhere land near a site, ascending; until complete
  static constexpr unsigned kMaxAreas = 4;
  uintptr_t areas[kMaxAreas];
  unsigned area_count;
  unsigned long stub_bytes;
  char name[200];

  // Whether the code in memory is still the one that was changed, not a fresh copy of the file.
  bool jumps_in_place() const;
  // Stubs stay where code that jumps to them may be left.
  void release(bool with_stubs);
};

// Scratch that is kept between objects of one call.
struct Workspace {
  Flow flow{};
  Vec<uint8_t> bytes{};  // the function, patches undone
  Vec<uintptr_t> addresses{};
  struct Plan {
    size_t site;
    uintptr_t base;  // of the function, in memory
    Placement placement;
  };
  Vec<Plan> plans{};
  void release();
};

// The work on one object. `fd` may be -1. Null maps are read when they are needed.
class Patcher {
 public:
  Patcher(Object* object, const Config& config, Phase phase, Workspace* workspace)
      : object_(*object), config_(config), phase_(phase), ws_(*workspace) {}
  void run(int fd, Maps* maps);

 private:
  bool open(int fd, Maps* maps);
  template <typename Visit>
  void each_code_range(Visit visit) const;
  void find_candidates();
  bool relevant(const Site& site) const;
  void collect_far_branches();
  void examine(size_t site);
  bool load_function(uintptr_t vaddr, Site* site);
  const Insn* confirm(uint32_t offset, bool* postponed);
  bool planned(size_t site) const;
  void take(const Placement& p);
  void look_for_entries();
  void apply(Maps* maps);
  const char* write_stubs(Maps* maps, StubWriter* writer);
  bool write_jumps(const StubWriter& writer);
  const char* try_hop(const Insn& site, uintptr_t base, Placement* out);
  void remember(Range given);
  void give_up(const char* reason);

  Object& object_;
  const Config& config_;
  Phase phase_;
  Workspace& ws_;
  ElfImage image_{};
  bool loaded_ = false;  // ws_.flow holds a function of this object
  bool looked_ = false;  // entries_ is filled
  Vec<Range> unsure_{};  // functions, in memory, with sites that the flow from their start does not reach
  Vec<uintptr_t> entries_{};  // ascending
  bool swept_ = false;
  struct Jump {
    uintptr_t at, to;
    uint32_t length;
    bool is_short;
  };
  Vec<Jump> jumps_{};
};

}  // namespace upcall::patch
