// SPDX-License-Identifier: Apache-2.0
#include "unwind/go_frames.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace gpusonde::unwind {
namespace {

constexpr size_t kNowhere = std::numeric_limits<size_t>::max();
// Maximum size of a function that switches stacks; the longest known has 200 bytes.
constexpr uint64_t kMaxCodeBytes = 4096;
// Longer than all names that are compared here.
constexpr size_t kMaxNameBytes = 64;
// Per function; bounded, as functions of a crafted table may share a long list. The go command's have 60 at
// most.
constexpr size_t kMaxDepths = 65'536;
constexpr int32_t kReturnAddressBytes = 8;
// A frame that is deeper is none.
constexpr int32_t kMaxDepth = std::numeric_limits<int32_t>::max() - kReturnAddressBytes;
// Offsets of registers from the stack pointer at rt_sigreturn(2): struct ucontext (asm/ucontext.h) and its
// struct sigcontext.
constexpr int32_t kSignalRbp = 120, kSignalRsp = 160, kSignalRip = 168;

using Code = std::span<const std::byte>;
using symbols::GoTable;

// The first position of these bytes from `from` on.
size_t Find(Code code, std::initializer_list<uint8_t> bytes, size_t from = 0) {
  if (from > code.size()) return kNowhere;
  const auto found = std::ranges::search(code.subspan(from), std::as_bytes(std::span(bytes)));
  return found.empty() ? kNowhere : from + static_cast<size_t>(found.begin() - code.subspan(from).begin());
}

// The position after these bytes.
size_t Behind(Code code, std::initializer_list<uint8_t> bytes, size_t from = 0) {
  const size_t found = Find(code, bytes, from);
  return found == kNowhere ? kNowhere : found + bytes.size();
}

std::optional<int32_t> Number32(Code code, size_t place) {
  int32_t value = 0;
  if (place == kNowhere || place > code.size() || code.size() - place < sizeof value) return std::nullopt;
  std::memcpy(&value, code.subspan(place).data(), sizeof value);
  return value;
}
std::optional<int32_t> Number8(Code code, size_t place) {
  if (place == kNowhere || place >= code.size()) return std::nullopt;
  return static_cast<int8_t>(code[place]);
}

Rule Unsupported() { return RuleOfKind(GPUSONDE_CFA_UNSUPPORTED); }

Rule AtDepth(int32_t bytes) {
  Rule rule = RuleOfKind(GPUSONDE_CFA_REGISTER);
  rule.cfa_register = GPUSONDE_DWARF_RSP;
  rule.cfa_offset = bytes + kReturnAddressBytes;
  rule.ra = GPUSONDE_SAVED_AT_CFA;
  rule.ra_offset = -kReturnAddressBytes;
  return rule;
}

Rule SignalFrame() {
  Rule rule = RuleOfKind(GPUSONDE_CFA_DEREFERENCE);
  rule.cfa_register = GPUSONDE_DWARF_RSP;
  rule.cfa_offset = kSignalRsp;
  rule.rbp = GPUSONDE_SAVED_AT_RSP;
  rule.rbp_offset = kSignalRbp;
  rule.ra = GPUSONDE_SAVED_AT_RSP;
  rule.ra_offset = kSignalRip;
  return rule;
}

// The outermost functions of stacks, as in Go's own traceback (TOPFRAME in its assembly).
bool IsStart(std::string_view name) {
  return name == "runtime.goexit" || name == "runtime.mstart" || name == "runtime.rt0_go";
}

bool ReturnsFromSignals(std::string_view name) {
  return name == "runtime.sigreturn" || name == "runtime.sigreturn__sigaction";
}

bool AsksTheClock(std::string_view name) {
  return name == "runtime.nanotime1" || name == "runtime.walltime" || name == "time.now";
}

// Names of assembly functions, without the suffixes of some versions.
std::string_view Plain(std::string_view name) {
  for (const std::string_view suffix : {".abi0", ".abiinternal"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

}  // namespace

GoFrames::GoFrames(const GoTable& table, ReadCode read_code)
    : table_(table), read_code_(std::move(read_code)) {
  for (size_t i = 0; i < table.size(); ++i) {
    GoTable::Function function = table.At(i);
    const std::string_view name = Plain(table.NameOf(function, kMaxNameBytes));
    if (name == "runtime.systemstack") ReadLayout(function);
    calls_back_ = calls_back_ || name.starts_with("_cgoexp_");
    // It is never called: the kernel puts its address on the stack as the return address.
    if (ReturnsFromSignals(name) && !functions_.empty() && functions_.back().end == function.start) {
      --functions_.back().end;
      --function.start;
    }
    if (function.end > function.start) functions_.push_back(function);
  }
}

void GoFrames::ReadLayout(const GoTable::Function& systemstack) {
  const std::vector<std::byte> code =
      read_code_(systemstack.start, std::min(systemstack.end - systemstack.start, kMaxCodeBytes));
  const auto g = Number32(code, Behind(code, {0x64, 0x48, 0x8B, 0x04, 0x25}));  // mov rax, fs:g
  const auto m = Number8(code, Behind(code, {0x48, 0x8B, 0x58}));               // mov rbx, [rax + m]
  const auto curg = Number32(code, Behind(code, {0x48, 0x3B, 0x83}));           // cmp rax, [rbx + curg]
  const auto sched = Number8(code, Behind(code, {0x48, 0x8B, 0x60}));           // mov rsp, [rax + sched]
  if (g.has_value() && m.has_value() && curg.has_value() && sched.has_value())
    layout_ = {.known = true, .g = *g, .m = *m, .curg = *curg, .sched = *sched};
}

Rule GoFrames::SwitchRule(gpusonde_go_switch kind, int32_t saved) const {
  Rule rule = RuleOfKind(GPUSONDE_CFA_GO);
  rule.cfa_register = kind;
  rule.cfa_offset = layout_.g;
  rule.cfa_add = layout_.curg;
  rule.rbp_offset = layout_.m;
  rule.ra_offset = saved;
  return rule;
}

// From the instruction that writes the stack pointer up to the one that restores it.
GoFrames::Parts GoFrames::SystemStack(const std::vector<std::byte>& code) const {
  const auto sched = static_cast<uint8_t>(layout_.sched);
  size_t begin = Behind(code, {0x48, 0x89, 0xDC});                         // mov rsp, rbx
  if (begin == kNowhere) begin = Behind(code, {0x48, 0x8B, 0x62, sched});  // mov rsp, [rdx + sched]
  const size_t end = Behind(code, {0x48, 0x8B, 0x60, sched}, begin);       // mov rsp, [rax + sched]
  if (end == kNowhere) return {{.rule = Unsupported()}};
  return {{begin, end, SwitchRule(GPUSONDE_GO_CALLER, layout_.sched)}};
}

// The function that it calls never returns. The thread's stack continues where it was when the thread began
// to schedule goroutines; on a thread on which C called Go it continues elsewhere, at an unknown place.
GoFrames::Parts GoFrames::MCall(const std::vector<std::byte>& code) const {
  const size_t begin =
      Behind(code, {0x49, 0x8B, 0x66, static_cast<uint8_t>(layout_.sched)});  // mov rsp, [r14 + …]
  if (begin == kNowhere) return {{.rule = Unsupported()}};
  return {
      {.begin = begin, .rule = calls_back_ ? Unsupported() : SwitchRule(GPUSONDE_GO_THREAD, layout_.sched)}};
}

GoFrames::Parts GoFrames::MoreStack(const std::vector<std::byte>& code) const {
  const size_t begin =
      Behind(code, {0x48, 0x8B, 0x63, static_cast<uint8_t>(layout_.sched)});  // mov rsp, [rbx + …]
  if (begin == kNowhere) return {{.rule = Unsupported()}};
  return {{.begin = begin, .rule = SwitchRule(GPUSONDE_GO_GOROUTINE, layout_.sched)}};
}

// Calls C on the thread's own stack. If it is on that stack already, it only aligns and saves the stack
// pointer.
GoFrames::Parts GoFrames::CgoCall(const std::vector<std::byte>& code) const {
  constexpr int32_t kKeptAt = 40;
  const std::initializer_list<uint8_t> write_back = {0x48, 0x89, 0xF4};  // mov rsp, rsi
  const size_t begin =
      Behind(code, {0x48, 0x8B, 0x66, static_cast<uint8_t>(layout_.sched)});  // mov rsp, [rsi + …]
  const size_t end = Behind(code, write_back, begin);
  const size_t align = Find(code, {0x48, 0x83, 0xEC, 0x40}, end);              // sub rsp, 64
  const size_t kept = Behind(code, {0x48, 0x89, 0x54, 0x24, kKeptAt}, align);  // mov [rsp + 40], rdx
  const size_t kept_end = Behind(code, write_back, kept);
  if (kept_end == kNowhere) return {{.rule = Unsupported()}};
  Rule aside = AtDepth(0);
  aside.cfa = GPUSONDE_CFA_DEREFERENCE;
  aside.cfa_offset = kKeptAt;
  aside.cfa_add = kReturnAddressBytes;
  return {{begin, end, SwitchRule(GPUSONDE_GO_CALLER, layout_.sched)},
          {align, kept, Unsupported()},
          {kept, kept_end, aside}};
}

// Calls the vDSO on the thread's own stack, after saving its caller's address and stack pointer in the m.
GoFrames::Parts GoFrames::Clock(const std::vector<std::byte>& code) const {
  // Without a vDSO it is written in Go and doesn't switch stacks.
  if (Find(code, {0x48, 0x83, 0xE4, 0xF0}) == kNowhere) return {};  // and rsp, -16
  const size_t note = Behind(code, {0x48, 0x89, 0x93});             // mov [rbx + saved], rdx
  const std::optional<int32_t> saved = Number32(code, note);
  const size_t back = Behind(code, {0x4C, 0x89, 0xE4}, note);  // mov rsp, r12
  const size_t returned = Behind(code, {0xC3}, back);
  if (!saved.has_value() || returned == kNowhere) return {{.rule = Unsupported()}};
  const Rule rule = SwitchRule(GPUSONDE_GO_CLOCK, *saved);
  return {{note + sizeof *saved, back, rule}, {.begin = returned, .rule = rule}};
}

GoFrames::Parts GoFrames::PartsOf(const GoTable::Function& function) const {
  const std::string_view name = Plain(table_.NameOf(function, kMaxNameBytes));
  if (IsStart(name)) return {{.rule = RuleOfKind(GPUSONDE_CFA_END)}};
  if (ReturnsFromSignals(name)) return {{.rule = SignalFrame()}};
  const bool goes = name == "gogo", asks_clock = AsksTheClock(name);
  const bool grows = name == "runtime.morestack", calls_c = name == "runtime.asmcgocall";
  const bool schedules = name == "runtime.mcall", borrows = name == "runtime.systemstack";
  if (!goes && !asks_clock && !grows && !calls_c && !schedules && !borrows) return {};
  const std::vector<std::byte> code =
      read_code_(function.start, std::min(function.end - function.start, kMaxCodeBytes));
  if (goes) {
    // During its last instructions the stack is another goroutine's already.
    const size_t begin = Behind(code, {0x48, 0x8B, 0x23});  // mov rsp, [rbx]
    return {{.begin = begin == kNowhere ? 0 : begin, .rule = Unsupported()}};
  }
  if (!layout_.known) return {{.rule = Unsupported()}};
  if (asks_clock) return Clock(code);
  if (grows) return MoreStack(code);
  if (calls_c) return CgoCall(code);
  return schedules ? MCall(code) : SystemStack(code);
}

bool GoFrames::Run(const GoTable::Function& function,
                   const std::function<void(uint64_t address, const Rule& rule)>& row) const {
  const Parts parts = PartsOf(function);
  struct Depth {
    uint64_t begin;
    int32_t bytes;
  };
  std::vector<Depth> depths;
  const bool whole = table_.ForEachDepth(function, [&depths](uint64_t address, int32_t bytes) {
    depths.push_back({address, bytes});
    return depths.size() < kMaxDepths;
  });
  const auto rule_at = [&](uint64_t address) {
    const uint64_t offset = address - function.start;
    for (const Part& part : parts)
      if (offset >= part.begin && offset < part.end) return part.rule;
    const auto after = std::ranges::upper_bound(depths, address, {}, &Depth::begin);
    const int32_t bytes = after == depths.begin() ? -1 : std::prev(after)->bytes;
    return bytes < 0 || bytes > kMaxDepth ? RuleOfKind(GPUSONDE_CFA_NONE) : AtDepth(bytes);
  };
  std::vector<uint64_t> changes = {function.start};
  for (const Depth& depth : depths) changes.push_back(depth.begin);
  for (const Part& part : parts)
    for (const uint64_t offset : {part.begin, part.end})
      if (offset < function.end - function.start) changes.push_back(function.start + offset);
  std::ranges::sort(changes);
  const auto repeated = std::ranges::unique(changes);
  changes.erase(repeated.begin(), repeated.end());
  for (const uint64_t address : changes) row(address, rule_at(address));
  return whole;
}

}  // namespace gpusonde::unwind
