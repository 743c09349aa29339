#include "runtime_code.h"

#include <cxxabi.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>

namespace upcall::test {

namespace {

std::string demangled(const char* name) {
  int status = -1;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                    free);
  return status == 0 ? text.get() : name;
}

}  // namespace

void RuntimeCode::refresh(pid_t process) {
  ranges_.clear();
  entries_.clear();
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin, end, offset;
    char rights[8];
    int name_at = 0;
    if (sscanf(line.c_str(), "%lx-%lx %7s %lx %*s %*s %n", &begin, &end, rights, &offset, &name_at) < 4 ||
        rights[2] != 'x')
      continue;
    const std::string path = line.substr(static_cast<size_t>(name_at));
    // Executable memory without a name: the storms make none, so these are the substitution engine's stubs.
    Kind kind = path.empty() ? Kind::stub : Kind::other;
    if (path.size() >= 13 && path.compare(path.size() - 13, 13, "/libupcall.so") == 0) {
      kind = Kind::library;
      if (begin != read_for_) read_symbols(path, begin, offset);
      read_for_ = begin;
      for (const Function& function : functions_)
        if (function.begin + bias_ >= begin && function.begin + bias_ < end)
          entries_.push_back(function.begin + bias_);
    }
    ranges_.push_back({begin, end, kind});
  }
}

const RuntimeCode::Range* RuntimeCode::find(uint64_t address) const {
  for (const Range& range : ranges_)
    if (address >= range.begin && address < range.end) return &range;
  return nullptr;
}

bool RuntimeCode::contains(pid_t process, uint64_t address) {
  const Range* range = find(address);
  if (range == nullptr) {
    refresh(process);
    range = find(address);
  }
  return range != nullptr && range->kind != Kind::other;
}

void RuntimeCode::read_symbols(const std::string& path, uint64_t mapped_at, uint64_t offset) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.size() < sizeof(Elf64_Ehdr)) return;
  const char* start = bytes.data();
  const auto* head = reinterpret_cast<const Elf64_Ehdr*>(start);
  const auto* segments = reinterpret_cast<const Elf64_Phdr*>(start + head->e_phoff);
  for (int i = 0; i < head->e_phnum; ++i)
    if (segments[i].p_type == PT_LOAD && (segments[i].p_offset & ~0xfffUL) == offset)
      bias_ = mapped_at - (segments[i].p_vaddr & ~0xfffUL);
  functions_.clear();
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(start + head->e_shoff);
  for (int i = 0; i < head->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const char* names = start + sections[sections[i].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(start + sections[i].sh_offset);
    for (uint64_t k = 0; k < sections[i].sh_size / sizeof(Elf64_Sym); ++k)
      if (ELF64_ST_TYPE(symbols[k].st_info) == STT_FUNC && symbols[k].st_value != 0)
        functions_.push_back({symbols[k].st_value, demangled(names + symbols[k].st_name)});
  }
  std::sort(functions_.begin(), functions_.end(),
            [](const Function& a, const Function& b) { return a.begin < b.begin; });
}

std::string RuntimeCode::name(uint64_t address) const {
  const Range* range = find(address);
  if (range == nullptr || range->kind == Kind::other) return "?";
  if (range->kind == Kind::stub) return "stub";
  const auto next =
      std::upper_bound(functions_.begin(), functions_.end(), address - bias_,
                       [](uint64_t value, const Function& function) { return value < function.begin; });
  return next == functions_.begin() ? "libupcall.so" : std::prev(next)->name;
}

uint64_t RuntimeCode::entry(const std::string& name) const {
  const auto at = std::find_if(functions_.begin(), functions_.end(),
                               [&name](const Function& function) { return function.name == name; });
  return at == functions_.end() ? 0 : at->begin + bias_;
}

}  // namespace upcall::test
