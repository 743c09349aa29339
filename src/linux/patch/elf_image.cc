#include "linux/patch/elf_image.h"

#include <linux/stat.h>

namespace upcall::patch {
namespace {

constexpr int kAtFdcwd = -100;
constexpr int kAtEmptyPath = 0x1000;
constexpr int kReadOnlyCloexec = 02000000;

// DW_EH_PE_*
constexpr uint8_t kOmit = 0xff, kUdata4 = 0x03, kDatarelSdata4 = 0x3b;

template <typename T>
T load(const uint8_t* p) {
  T v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

uint64_t uleb(const uint8_t*& p, const uint8_t* end) {
  uint64_t v = 0;
  for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
    uint8_t b = *p++;
    v |= static_cast<uint64_t>(b & 0x7f) << shift;
    if (!(b & 0x80)) break;
  }
  return v;
}

size_t encoded_size(uint8_t encoding) {
  switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
      return 8;
    case 0x03:
    case 0x0b:
      return 4;
    case 0x02:
    case 0x0a:
      return 2;
    default:
      return 0;
  }
}

// A pointer in DWARF's encoding, `vaddr` being its own place. False for what compilers do not use here.
bool read_encoded(const uint8_t* p, uintptr_t vaddr, uint8_t encoding, uintptr_t* out) {
  uintptr_t v;
  switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
      v = load<uint64_t>(p);
      break;
    case 0x03:
      v = load<uint32_t>(p);
      break;
    case 0x0b:
      v = static_cast<uintptr_t>(static_cast<intptr_t>(load<int32_t>(p)));
      break;
    case 0x02:
      v = load<uint16_t>(p);
      break;
    case 0x0a:
      v = static_cast<uintptr_t>(static_cast<intptr_t>(load<int16_t>(p)));
      break;
    default:
      return false;
  }
  if ((encoding & 0x70) == 0x10)
    v += vaddr;
  else if (encoding & 0x70)
    return false;
  *out = v;
  return true;
}

struct Identity {
  uint64_t device, inode, size;
};

bool identify(long fd, Identity* out) {
  struct statx st {};
  long r = kernel::sys(__NR_statx, fd, "", kAtEmptyPath, STATX_INO | STATX_SIZE | STATX_TYPE, &st);
  if (kernel::is_error(r) || (st.stx_mode & 0170000) != 0100000) return false;
  *out = {static_cast<uint64_t>(st.stx_dev_major) << 32 | st.stx_dev_minor, st.stx_ino, st.stx_size};
  return true;
}

}  // namespace

bool ElfImage::open(const Mapping& m, const char* path, int fd, const Maps* maps) {
  if (open_file(m, path, fd, fd >= 0)) {
    if (parse(m)) return true;
    close();
    return false;
  }
  return maps && use_memory(m, path, *maps) && parse(m);
}

bool ElfImage::open_file(const Mapping& m, const char* path, int fd, bool only_fd) {
  long use = fd;
  if (!only_fd) {
    use = kernel::sys(__NR_openat, kAtFdcwd, path, kReadOnlyCloexec, 0);
    if (kernel::is_error(use)) return false;
  }
  Identity id{};
  bool ok = identify(use, &id) && id.size >= sizeof(Elf64_Ehdr);
  // Some file systems (btrfs, overlays) show another device number in maps than in stat: the inode must
  // agree then, and the code is compared before it is believed.
  if (ok && !only_fd && id.inode != m.inode) ok = false;
  trusted_ = only_fd || id.device == m.device;
  if (ok) {
    long memory = kernel::sys(__NR_mmap, nullptr, id.size, kRead, kMapPrivate, use, 0);
    ok = !kernel::is_error(memory);
    if (ok) {
      file_ = reinterpret_cast<const uint8_t*>(memory);
      size_ = id.size;
    }
  }
  if (!only_fd) kernel::sys(__NR_close, use);
  return ok;
}

// The file is gone or unreadable: its first page and unwind tables are in memory all the same.
bool ElfImage::use_memory(const Mapping& m, const char* path, const Maps& maps) {
  const Mapping* first = nullptr;
  for (const Mapping& o : maps.all()) {
    if (o.start > m.start) break;
    if (o.inode == m.inode && o.device == m.device && o.offset == 0 && (o.prot & kRead)) first = &o;
  }
  if (!first || first->end - first->start < sizeof(Elf64_Ehdr)) return false;
  readable_lo_ = readable_hi_ = first->start;
  for (const Mapping& o : maps.all())
    if (o.start == readable_hi_ && (o.prot & kRead)) readable_hi_ = o.end;
  header_ = reinterpret_cast<const Elf64_Ehdr*>(first->start);
  trusted_ = true;
  return true;
}

void ElfImage::close() {
  if (file_) kernel::sys(__NR_munmap, file_, size_);
  file_ = nullptr;
  fdes_.release();
  sized_.release();
}

const uint8_t* ElfImage::at(uintptr_t vaddr, size_t length) const {
  for (unsigned i = 0; i < segment_count_; ++i) {
    const Elf64_Phdr& s = segments_[i];
    if (s.p_type != PT_LOAD || vaddr < s.p_vaddr || vaddr - s.p_vaddr >= s.p_filesz) continue;
    if (length > s.p_filesz - (vaddr - s.p_vaddr)) return nullptr;
    uintptr_t offset = vaddr - s.p_vaddr + s.p_offset;
    if (file_) return offset <= size_ && length <= size_ - offset ? file_ + offset : nullptr;
    uintptr_t address = bias_ + vaddr;
    return address >= readable_lo_ && address + length <= readable_hi_
               ? reinterpret_cast<const uint8_t*>(address)
               : nullptr;
  }
  return nullptr;
}

Range ElfImage::extent() const {
  Range all = {~0ul, 0};
  for (unsigned i = 0; i < segment_count_; ++i) {
    const Elf64_Phdr& s = segments_[i];
    if (s.p_type != PT_LOAD) continue;
    if (page_down(s.p_vaddr) < all.lo) all.lo = page_down(s.p_vaddr);
    if (page_up(s.p_vaddr + s.p_memsz) > all.hi) all.hi = page_up(s.p_vaddr + s.p_memsz);
  }
  return all;
}

bool ElfImage::parse(const Mapping& m) {
  if (file_) header_ = reinterpret_cast<const Elf64_Ehdr*>(file_);
  const Elf64_Ehdr& h = *header_;
  if (load<uint32_t>(h.e_ident) != 0x464c457f || h.e_ident[EI_CLASS] != ELFCLASS64 ||
      h.e_machine != EM_X86_64 || h.e_phentsize != sizeof(Elf64_Phdr) || h.e_phnum > 256)
    return false;
  uintptr_t headers = h.e_phoff + h.e_phnum * sizeof(Elf64_Phdr);
  if (headers > (file_ ? size_ : kPage)) return false;
  segments_ = reinterpret_cast<const Elf64_Phdr*>(reinterpret_cast<const uint8_t*>(header_) + h.e_phoff);
  segment_count_ = h.e_phnum;
  bool found = false;
  for (unsigned i = 0; i < segment_count_ && !found; ++i) {
    const Elf64_Phdr& s = segments_[i];
    if (s.p_type != PT_LOAD || !(s.p_flags & PF_X) || page_down(s.p_offset) > m.offset ||
        m.offset >= s.p_offset + s.p_filesz)
      continue;
    bias_ = m.start - (m.offset - s.p_offset + s.p_vaddr);
    found = true;
  }
  if (!found) return false;
  read_sections();
  if (code_count_ == 0) read_segments();
  if (!symbols_[0].count && !symbols_[1].count) read_dynamic_symbols();
  read_unwind_table();
  return true;
}

void ElfImage::add_code(uintptr_t lo, uintptr_t hi) {
  if (lo >= hi || code_count_ == kMaxCode) return;
  unsigned i = code_count_++;
  for (; i && code_[i - 1].lo > lo; --i) code_[i] = code_[i - 1];
  code_[i] = {lo, hi};
}

void ElfImage::read_sections() {
  const Elf64_Ehdr& h = *header_;
  if (!file_ || h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shoff > size_ || h.e_shoff % 8 ||
      h.e_shnum * sizeof(Elf64_Shdr) > size_ - h.e_shoff)
    return;
  const Elf64_Shdr* sections = reinterpret_cast<const Elf64_Shdr*>(file_ + h.e_shoff);
  for (unsigned i = 0; i < h.e_shnum; ++i) {
    const Elf64_Shdr& s = sections[i];
    if (s.sh_type == SHT_PROGBITS && (s.sh_flags & SHF_EXECINSTR) && (s.sh_flags & SHF_ALLOC) &&
        at(s.sh_addr, s.sh_size))
      add_code(s.sh_addr, s.sh_addr + s.sh_size);
    if ((s.sh_type == SHT_SYMTAB || s.sh_type == SHT_DYNSYM) && s.sh_entsize == sizeof(Elf64_Sym) &&
        s.sh_offset <= size_ && s.sh_size <= size_ - s.sh_offset && s.sh_offset % 8 == 0)
      symbols_[s.sh_type == SHT_SYMTAB] = {reinterpret_cast<const Elf64_Sym*>(file_ + s.sh_offset),
                                           s.sh_size / sizeof(Elf64_Sym)};
  }
}

void ElfImage::read_segments() {
  for (unsigned i = 0; i < segment_count_; ++i)
    if (segments_[i].p_type == PT_LOAD && (segments_[i].p_flags & PF_X) &&
        at(segments_[i].p_vaddr, segments_[i].p_filesz))
      add_code(segments_[i].p_vaddr, segments_[i].p_vaddr + segments_[i].p_filesz);
}

// Without section headers the number of dynamic symbols is known from the old hash table only, or from
// walking the new one: its buckets' last chains.
void ElfImage::read_dynamic_symbols() {
  uintptr_t symtab = 0, hash = 0, gnu_hash = 0;
  for (unsigned i = 0; i < segment_count_; ++i) {
    if (segments_[i].p_type != PT_DYNAMIC) continue;
    const uint8_t* p = at(segments_[i].p_vaddr, segments_[i].p_filesz);
    if (!p) return;
    for (size_t n = segments_[i].p_filesz / sizeof(Elf64_Dyn); n--; p += sizeof(Elf64_Dyn)) {
      Elf64_Dyn d = load<Elf64_Dyn>(p);
      // The dynamic linker relocates these entries in memory.
      uintptr_t v = d.d_un.d_ptr >= bias_ && !file_ ? d.d_un.d_ptr - bias_ : d.d_un.d_ptr;
      if (d.d_tag == DT_SYMTAB) symtab = v;
      if (d.d_tag == DT_HASH) hash = v;
      if (d.d_tag == DT_GNU_HASH) gnu_hash = v;
    }
  }
  size_t count = 0;
  if (const uint8_t* p = hash ? at(hash, 8) : nullptr) {
    count = load<uint32_t>(p + 4);
  } else if (const uint8_t* g = gnu_hash ? at(gnu_hash, 16) : nullptr) {
    uint32_t buckets = load<uint32_t>(g), first = load<uint32_t>(g + 4), bloom = load<uint32_t>(g + 8);
    uintptr_t bucket_table = gnu_hash + 16 + bloom * 8ul, chains = bucket_table + buckets * 4ul;
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets; ++i)
      if (const uint8_t* b = at(bucket_table + i * 4ul, 4))
        if (load<uint32_t>(b) > last) last = load<uint32_t>(b);
    while (last >= first) {
      const uint8_t* c = at(chains + (last - first) * 4ul, 4);
      ++last;
      if (!c || (load<uint32_t>(c) & 1)) break;
    }
    count = last;
  }
  if (const uint8_t* s = symtab && count ? at(symtab, count * sizeof(Elf64_Sym)) : nullptr)
    symbols_[0] = {reinterpret_cast<const Elf64_Sym*>(s), count};
}

const Range* ElfImage::code_around(uintptr_t vaddr) const {
  for (unsigned i = 0; i < code_count_; ++i)
    if (code_[i].contains(vaddr)) return &code_[i];
  return nullptr;
}

void ElfImage::read_unwind_table() {
  for (unsigned i = 0; i < segment_count_; ++i) {
    const Elf64_Phdr& s = segments_[i];
    if (s.p_type != PT_GNU_EH_FRAME) continue;
    const uint8_t* p = at(s.p_vaddr, s.p_filesz);
    if (!p || s.p_filesz < 12 || p[0] != 1) return;
    if (p[1] == 0x1b && p[2] == kUdata4 && p[3] == kDatarelSdata4) {
      size_t count = load<uint32_t>(p + 8);
      if (count <= (s.p_filesz - 12) / 8 && count) {
        hdr_count_ = count;
        hdr_vaddr_ = s.p_vaddr;
        hdr_table_ = reinterpret_cast<const int32_t*>(p + 12);
        return;
      }
    }
    uintptr_t frames = 0;
    if (p[1] != kOmit && read_encoded(p + 4, s.p_vaddr + 4, p[1], &frames)) walk_eh_frame(frames, ~0ul);
    return;
  }
}

// Sequentially, for objects without a search table.
void ElfImage::walk_eh_frame(uintptr_t vaddr, uintptr_t limit) {
  while (vaddr < limit) {
    const uint8_t* p = at(vaddr, 8);
    if (!p) break;
    uint32_t length = load<uint32_t>(p);
    if (length == 0 || length == 0xffffffff) break;
    Function f{};
    if (load<uint32_t>(p + 4) != 0 && read_fde(vaddr, &f)) fdes_.push({f.start, vaddr});
    vaddr += 4 + length;
  }
  sort(fdes_.begin(), fdes_.size());
}

ElfImage::Fde ElfImage::fde(size_t i) const {
  if (!hdr_table_) return fdes_[i];
  return {hdr_vaddr_ + static_cast<uintptr_t>(static_cast<intptr_t>(hdr_table_[2 * i])),
          hdr_vaddr_ + static_cast<uintptr_t>(static_cast<intptr_t>(hdr_table_[2 * i + 1]))};
}

bool ElfImage::read_fde(uintptr_t vaddr, Function* out) const {
  const uint8_t* p = at(vaddr, 8);
  if (!p) return false;
  uint32_t length = load<uint32_t>(p), back = load<uint32_t>(p + 4);
  if (length < 12 || length == 0xffffffff || back == 0 || !at(vaddr, 4ul + length)) return false;
  uintptr_t cie = vaddr + 4 - back;
  const uint8_t* c = at(cie, 16);
  if (!c || load<uint32_t>(c + 4) != 0) return false;
  const uint8_t* end = at(cie, 4ul + load<uint32_t>(c));
  if (!end) return false;
  end += 4ul + load<uint32_t>(c);
  c += 8;
  uint8_t version = *c++;
  const uint8_t* augmentation = c;
  while (c < end && *c) ++c;
  ++c;
  uleb(c, end);  // code alignment
  uleb(c, end);  // data alignment
  if (version == 1)
    ++c;
  else
    uleb(c, end);
  uint8_t encoding = 0;
  bool lsda = false;
  if (*augmentation == 'z') {
    uleb(c, end);
    for (const uint8_t* a = augmentation + 1; *a && c < end; ++a) {
      if (*a == 'R') encoding = *c++;
      if (*a == 'L') {
        lsda = *c != kOmit;
        ++c;
      }
      if (*a == 'P') {
        uint8_t personality = *c++;
        if (!encoded_size(personality)) return false;
        c += encoded_size(personality);
      }
    }
  }
  size_t width = encoded_size(encoding);
  uintptr_t start, size;
  if (!width || length < 4 + 2 * width || !read_encoded(p + 8, vaddr + 8, encoding, &start) ||
      !read_encoded(p + 8 + width, 0, encoding & 0x0f, &size))
    return false;
  out->start = start;
  out->end = start + size;
  out->landing_pads = lsda;
  return true;
}

// Index of the first FDE that starts after `vaddr`.
size_t ElfImage::fde_after(uintptr_t vaddr) const {
  size_t lo = 0, n = fde_count();
  while (lo < n) {
    size_t mid = (lo + n) / 2;
    if (fde(mid).start <= vaddr)
      lo = mid + 1;
    else
      n = mid;
  }
  return lo;
}

// The function symbol with the highest start that is not above `vaddr` (the longest of several), and the
// lowest start above it. Few candidates need symbols: the table is sorted only after some have asked.
bool ElfImage::symbol_around(uintptr_t vaddr, Sized* best, uintptr_t* next) {
  constexpr unsigned kLinear = 8;
  *best = {0, 0};
  auto consider = [&](const Sized& s) {
    if (s.start > vaddr) {
      if (s.start < *next) *next = s.start;
    } else if (s.start > best->start || (s.start == best->start && s.end > best->end)) {
      *best = s;
    }
  };
  ++symbol_lookups_;
  if (symbol_lookups_ <= kLinear) {
    for_each_code_symbol([&](uintptr_t value, uintptr_t size, bool function) {
      if (function) consider({value, value + size});
    });
  } else {
    if (symbol_lookups_ == kLinear + 1) {
      for_each_code_symbol([this](uintptr_t value, uintptr_t size, bool function) {
        if (function) sized_.push({value, value + size});
      });
      sort(sized_.begin(), sized_.size());
    }
    size_t i = lower_bound(sized_.begin(), sized_.size(), Sized{vaddr + 1, 0});
    if (i < sized_.size()) consider(sized_[i]);
    while (i && (!best->start || sized_[i - 1].start == best->start)) consider(sized_[--i]);
  }
  return best->start != 0;
}

bool ElfImage::find_function(uintptr_t vaddr, Function* out) {
  const Range* section = code_around(vaddr);
  if (!section) return false;
  size_t after = fde_after(vaddr);
  uintptr_t next = section->hi;
  if (after < fde_count() && fde(after).start < next) next = fde(after).start;
  Function best{};
  bool have = after > 0 && read_fde(fde(after - 1).entry, &best) && section->contains(best.start);
  if (!have || vaddr >= best.end) {
    Sized s;
    if (symbol_around(vaddr, &s, &next) && section->contains(s.start) && (!have || s.start >= best.start)) {
      bool same = have && s.start == best.start;
      if (!same || s.end > best.end) best = {s.start, s.end, 0, same && best.landing_pads};
      have = true;
    }
  }
  if (!have) return false;
  best.next = best.end > next ? best.end : next;
  *out = best;
  return best.next <= section->hi;
}

}  // namespace upcall::patch
