// SPDX-License-Identifier: Apache-2.0
#include "symbols/kernel_symbols.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/fd.h"
#include "base/text.h"

namespace gpusonde::symbols {
namespace {

constexpr size_t kMaxKallsymsBytes = size_t{256} << 20;
// A gap larger than any function: addresses beyond it belong to code that kallsyms doesn't list (BPF
// trampolines).
constexpr uint64_t kMaxKernelFunctionBytes = 1 << 20;

struct Line {
  uint64_t address = 0;
  char type = 0;
  std::string_view name;
  std::string_view module = "vmlinux";
};

constexpr bool IsSpace(char c) { return c == ' ' || c == '\t'; }

// Not by find_first_of, which calls memchr for each character: that took a third of the time of parsing.
std::string_view NextWord(std::string_view& text) {
  const char* begin = std::ranges::find_if_not(text, IsSpace);
  const char* end = std::find_if(begin, text.data() + text.size(), IsSpace);
  text = {end, text.data() + text.size()};
  return {begin, end};
}

std::optional<Line> ParseLine(std::string_view text) {
  Line line;
  const std::string_view address = NextWord(text);
  const std::string_view type = NextWord(text);
  line.name = NextWord(text);
  const std::string_view module = NextWord(text);
  if (line.name.empty() || type.size() != 1) return std::nullopt;
  if (std::from_chars(address.data(), address.data() + address.size(), line.address, 16).ec != std::errc())
    return std::nullopt;
  line.type = type[0];
  if (module.size() > 2 && module.front() == '[') line.module = module.substr(1, module.size() - 2);
  return line;
}

}  // namespace

Result<KernelSymbols> KernelSymbols::Load() {
  ASSIGN_OR_RETURN(const std::string text, ReadFile("/proc/kallsyms", kMaxKallsymsBytes));
  return Parse(text);
}

Result<KernelSymbols> KernelSymbols::Parse(std::string_view text) {
  KernelSymbols symbols;
  std::unordered_map<std::string_view, uint32_t> module_index;
  size_t parsed = 0;
  while (!text.empty()) {
    const std::optional<Line> line = ParseLine(TakeLine(text));
    if (!line.has_value()) continue;
    ++parsed;
    const char type = static_cast<char>(line->type | 0x20);  // lower case: local or global alike
    if (line->address == 0 || (type != 't' && type != 'w')) continue;

    const auto [module, added] =
        module_index.try_emplace(line->module, static_cast<uint32_t>(symbols.modules_.size()));
    if (added) symbols.modules_.push_back({std::string(line->module)});
    Module& known = symbols.modules_[module->second];
    known.first = std::min(known.first, line->address);
    symbols.entries_.push_back({line->address, static_cast<uint32_t>(symbols.names_.size()), module->second});
    symbols.names_.append(line->name).push_back('\0');
  }
  if (symbols.entries_.empty()) {
    if (parsed == 0) return Fail(ErrorCode::kCorrupt, "/proc/kallsyms has no symbols");
    return Fail(ErrorCode::kPermissionDenied,
                "/proc/kallsyms hides kernel addresses; run as root or set kernel.kptr_restrict to 1 and "
                "give CAP_SYSLOG");
  }
  std::ranges::stable_sort(symbols.entries_, {}, &Entry::address);
  return symbols;
}

std::optional<KernelSymbol> KernelSymbols::Find(uint64_t address) const {
  auto entry = std::ranges::upper_bound(entries_, address, {}, &Entry::address);
  if (entry == entries_.begin()) return std::nullopt;
  --entry;
  if (address - entry->address > kMaxKernelFunctionBytes) return std::nullopt;
  const Module& module = modules_[entry->module];
  return KernelSymbol{module.name, names_.c_str() + entry->name, address - module.first};
}

}  // namespace gpusonde::symbols
