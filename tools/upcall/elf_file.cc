#include "elf_file.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace upcall::tool {
namespace {

class Reader {
 public:
  explicit Reader(int fd) : fd_(fd) {
    struct stat info = {};
    if (fstat(fd, &info) == 0) size_ = static_cast<uint64_t>(info.st_size);
  }

  bool read(uint64_t offset, void* to, size_t length) const {
    if (offset > size_ || length > size_ - offset) return false;
    size_t done = 0;
    while (done < length) {
      ssize_t n = pread(fd_, static_cast<char*>(to) + done, length - done, static_cast<off_t>(offset + done));
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  }

  std::string text(uint64_t offset, size_t longest) const {
    if (offset >= size_) return "";
    std::string buffer(static_cast<size_t>(std::min<uint64_t>(longest, size_ - offset)), '\0');
    if (!read(offset, buffer.data(), buffer.size())) return "";
    return buffer.substr(0, strnlen(buffer.data(), buffer.size()));
  }

 private:
  int fd_;
  uint64_t size_ = 0;
};

std::string machine_name(const unsigned char* ident, unsigned machine) {
  switch (machine) {
    case EM_386:
      return "i386";
    case EM_X86_64:
      return ident[EI_CLASS] == ELFCLASS32 ? "x32" : "x86-64";
    case EM_AARCH64:
      return "aarch64";
    case EM_ARM:
      return "arm";
    case EM_PPC64:
      return "ppc64";
    case EM_S390:
      return "s390";
    case EM_RISCV:
      return "riscv";
    case EM_MIPS:
      return "mips";
    default:
      return fmt::format("machine {}", machine);
  }
}

// File offset of a virtual address.
uint64_t file_offset(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const auto& s : segments) {
    if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz) {
      return address - s.p_vaddr + s.p_offset;
    }
  }
  return UINT64_MAX;
}

std::string read_soname(const Reader& file, const std::vector<Elf64_Phdr>& segments,
                        const Elf64_Phdr& dynamic) {
  uint64_t strings = UINT64_MAX;
  uint64_t name = UINT64_MAX;
  size_t count = static_cast<size_t>(std::min<uint64_t>(dynamic.p_filesz / sizeof(Elf64_Dyn), 1000));
  for (size_t i = 0; i < count; ++i) {
    Elf64_Dyn entry;
    if (!file.read(dynamic.p_offset + i * sizeof entry, &entry, sizeof entry) || entry.d_tag == DT_NULL)
      break;
    if (entry.d_tag == DT_STRTAB) strings = file_offset(segments, entry.d_un.d_ptr);
    if (entry.d_tag == DT_SONAME) name = entry.d_un.d_val;
  }
  if (strings == UINT64_MAX || name > UINT32_MAX) return "";
  return file.text(strings + name, 256);
}

}  // namespace

ElfFile read_elf(int fd) {
  ElfFile result;
  Reader file(fd);
  unsigned char ident[EI_NIDENT];
  if (!file.read(0, ident, SELFMAG) || memcmp(ident, ELFMAG, SELFMAG) != 0) return result;
  result.kind = ElfFile::Kind::damaged;
  // e_type and e_machine lie at the same place in both classes.
  Elf64_Half type_and_machine[2];
  if (!file.read(0, ident, sizeof ident) ||
      !file.read(EI_NIDENT, type_and_machine, sizeof type_and_machine)) {
    return result;
  }
  unsigned machine = type_and_machine[1];
  if (ident[EI_DATA] == ELFDATA2MSB) machine = __builtin_bswap16(type_and_machine[1]);
  result.machine = machine_name(ident, machine);
  if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB || machine != EM_X86_64) {
    result.kind = ElfFile::Kind::other_machine;
    return result;
  }
  Elf64_Ehdr header;
  if (!file.read(0, &header, sizeof header)) return result;
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
    result.kind = ElfFile::Kind::relocatable;
    return result;
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0) return result;
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!file.read(header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr))) return result;
  for (const auto& s : segments) {
    if (s.p_type == PT_INTERP) result.interpreter = file.text(s.p_offset, std::min<size_t>(s.p_filesz, 4096));
    if (s.p_type == PT_DYNAMIC) {
      result.dynamic = true;
      result.soname = read_soname(file, segments, s);
    }
  }
  result.kind =
      header.e_type == ET_DYN && result.interpreter.empty() ? ElfFile::Kind::shared : ElfFile::Kind::program;
  return result;
}

}  // namespace upcall::tool
