#include "environment.h"

#include <unistd.h>

#include <algorithm>

namespace upcall::tool {
namespace {

bool is_named(const std::string& entry, const std::string& name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && entry.compare(0, name.size(), name) == 0;
}

// ld.so takes spaces and colons as separators alike.
std::vector<std::string> split_preload(const std::string& list) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (at < list.size()) {
    size_t end = std::min(list.find_first_of(" :", at), list.size());
    if (end > at) parts.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string join_preload(const std::vector<std::string>& parts) {
  std::string list;
  for (const auto& part : parts) list += (list.empty() ? "" : ":") + part;
  return list;
}

}  // namespace

Environment Environment::inherited() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    result.entries_.emplace_back(*entry);
  return result;
}

void Environment::set(const std::string& name, const std::string& value) {
  unset(name);
  entries_.push_back(name + "=" + value);
}

void Environment::unset(const std::string& name) {
  std::erase_if(entries_, [&](const std::string& entry) { return is_named(entry, name); });
}

std::string Environment::get(const std::string& name) const {
  for (const auto& entry : entries_) {
    if (is_named(entry, name)) return entry.substr(name.size() + 1);
  }
  return "";
}

void Environment::remove_upcall() {
  std::erase_if(entries_, [](const std::string& entry) { return entry.compare(0, 7, "UPCALL_") == 0; });
  std::string existing = get("LD_PRELOAD");
  if (existing.empty()) return;
  std::vector<std::string> parts = split_preload(existing);
  std::erase_if(parts, [](const std::string& part) {
    return part == "libupcall.so" || part.ends_with("/libupcall.so");
  });
  if (parts.empty()) {
    unset("LD_PRELOAD");
  } else {
    set("LD_PRELOAD", join_preload(parts));
  }
}

std::vector<char*> Environment::pointers() const {
  std::vector<char*> result;
  for (const auto& entry : entries_) result.push_back(const_cast<char*>(entry.c_str()));
  result.push_back(nullptr);
  return result;
}

std::string preload_list(const std::string& library, const std::string& existing) {
  std::vector<std::string> parts = split_preload(existing);
  std::erase(parts, library);
  parts.insert(parts.begin(), library);
  return join_preload(parts);
}

}  // namespace upcall::tool
