// SPDX-License-Identifier: Apache-2.0
#include "agent/stack_interner.h"

#include <vector>

#include "symbols/demangle.h"

namespace gpusonde::agent {
namespace {

// Distinct raw stacks remembered before starting over; 64 bytes each. A busy service shows some thousands an
// hour.
constexpr size_t kMaxCachedStacks = 100'000;

}  // namespace

StackInterner::StackInterner(std::optional<symbols::KernelSymbols> kernel, symbols::BinaryTable& binaries,
                             ProcessTable& processes, Rows& rows)
    : kernel_(std::move(kernel)), binaries_(binaries), processes_(processes), rows_(rows) {}

Id128 StackInterner::Intern(Process& process, std::span<const uint64_t> kernel_frames,
                            std::span<const uint64_t> user_frames, model::DropCounts& drops) {
  processes_.RefreshPerfMap(process);
  // What the raw frames mean changes with the mappings and the perf map, so both are part of the key.
  IdHasher key("raw");
  key.Add(process.id)
      .Add(process.mappings.generation())
      .Add(process.perf_map_version)
      .Add(kernel_frames.size());
  for (const auto frames : {kernel_frames, user_frames})
    for (const uint64_t address : frames) key.Add(address);
  const Id128 raw = key.Finish();

  auto cached = by_raw_frames_.find(raw);
  if (cached == by_raw_frames_.end()) {
    if (by_raw_frames_.size() >= kMaxCachedStacks) Rewrite();
    CachedStack made;
    std::vector<Id128> locations;
    const auto add = [&](const Frame& frame) {
      locations.push_back(frame.location);
      made.unknown_mappings += frame.known_mapping ? 0 : 1;
      made.without_symbol += frame.known_mapping && !frame.named ? 1 : 0;
    };
    for (const uint64_t address : kernel_frames) add(KernelFrame(address));
    for (size_t i = 0; i < user_frames.size() && made.unknown_mappings == 0; ++i)
      // Callers' frames hold the address to return to; the call is the instruction before. An address outside
      // all code means that a frame pointer wasn't one: what would follow is no better.
      add(UserFrame(process, i == 0 ? user_frames[i] : user_frames[i] - 1));
    if (locations.empty()) add(UnknownFrame());
    made.stack = HashIds("stack", locations);
    if (stacks_.insert(made.stack).second)
      rows_.stacks.Append({.stack = made.stack, .locations = std::move(locations)});
    cached = by_raw_frames_.emplace(raw, made).first;
  }
  drops.Add(model::DropReason::kUnknownMapping, cached->second.unknown_mappings);
  drops.Add(model::DropReason::kNoSymbol, cached->second.without_symbol);
  drops.Merge(unreadable_.Take());
  return cached->second.stack;
}

void StackInterner::Rewrite() {
  by_raw_frames_.clear();
  locations_.clear();
  stacks_.clear();
  functions_.clear();
}

bool StackInterner::IsNew(const Id128& location, bool named) {
  const auto [known, added] = locations_.try_emplace(location, named);
  if (added) return true;
  // Written without a name before, and now there is one: the new row replaces the old.
  if (!named || known->second) return false;
  known->second = true;
  return true;
}

Id128 StackInterner::WriteFunction(const Id128& scope, const std::string& system_name, uint64_t address) {
  const Id128 function = IdHasher("function").Add(scope).Add(system_name).Add(address).Finish();
  if (functions_.insert(function).second)
    rows_.functions.Append({.function = function,
                            .name = symbols::Demangle(system_name),
                            .system_name = system_name,
                            .file = std::nullopt,
                            .line = std::nullopt});
  return function;
}

StackInterner::Frame StackInterner::KernelFrame(uint64_t address) {
  const auto symbol = kernel_.has_value() ? kernel_->Find(address) : std::nullopt;
  IdHasher hasher("kernel");
  if (symbol.has_value())
    hasher.Add(symbol->module).Add(symbol->module_offset);
  else
    hasher.Add("").Add(address);
  Frame frame{.location = hasher.Finish(), .named = symbol.has_value()};
  if (!IsNew(frame.location, frame.named)) return frame;

  model::Location row{.location = frame.location,
                      .kind = model::FrameKind::kKernel,
                      .binary = std::nullopt,
                      .address = static_cast<int64_t>(symbol.has_value() ? symbol->module_offset : address),
                      .functions = {},
                      .lines = {}};
  if (symbol.has_value()) {
    const Id128 scope = IdHasher("kernel_module").Add(symbol->module).Finish();
    row.functions = {WriteFunction(scope, std::string(symbol->name), 0)};
    row.lines = {0};
  }
  rows_.locations.Append(row);
  return frame;
}

StackInterner::Frame StackInterner::UserFrame(Process& process, uint64_t address) {
  const AddressSpace::Mapping* mapping = process.mappings.Find(address);
  if (mapping == nullptr) return UnknownFrame();
  return mapping->binary != nullptr ? FileFrame(process, *mapping, address) : JitFrame(process, address);
}

StackInterner::Frame StackInterner::FileFrame(const Process& process, const AddressSpace::Mapping& mapping,
                                              uint64_t address) {
  const uint64_t offset = address - mapping.start + mapping.file_offset;
  Frame frame{.location = IdHasher("file").Add(mapping.binary->id).Add(offset).Finish()};
  if (const auto known = locations_.find(frame.location); known != locations_.end() && known->second)
    return frame;

  if (!binaries_.Load(mapping.binary, process.info.pid).has_value())
    unreadable_.Add(model::DropReason::kUnreadableBinary);
  const std::optional<symbols::Symbol> symbol = binaries_.Find(mapping.binary, offset);
  frame.named = symbol.has_value() && !symbol->name.empty();
  if (!IsNew(frame.location, frame.named)) return frame;

  model::Location row{.location = frame.location,
                      .kind = model::FrameKind::kNative,
                      .binary = mapping.binary->id,
                      .address = static_cast<int64_t>(offset),
                      .functions = {},
                      .lines = {}};
  if (frame.named) {
    row.functions = {WriteFunction(mapping.binary->id, symbol->name, symbol->address)};
    row.lines = {0};
  }
  rows_.locations.Append(row);
  return frame;
}

StackInterner::Frame StackInterner::JitFrame(const Process& process, uint64_t address) {
  const std::optional<symbols::PerfMap::Symbol> symbol = process.perf_map.Find(address);
  if (!symbol.has_value()) return UnknownFrame();

  // JIT code moves and is overwritten: it is known by its name and place within, not by its address.
  const std::string name(symbol->name);
  const uint64_t offset = address - symbol->address;
  Frame frame{.location = IdHasher("jit").Add(process.id).Add(name).Add(offset).Finish()};
  if (IsNew(frame.location, true))
    rows_.locations.Append({.location = frame.location,
                            .kind = model::FrameKind::kJit,
                            .binary = std::nullopt,
                            .address = static_cast<int64_t>(address),
                            .functions = {WriteFunction(process.id, name, 0)},
                            .lines = {0}});
  return frame;
}

StackInterner::Frame StackInterner::UnknownFrame() {
  Frame frame{.location = IdHasher("unknown").Finish(), .known_mapping = false, .named = false};
  if (IsNew(frame.location, false))
    rows_.locations.Append({.location = frame.location,
                            .kind = model::FrameKind::kUnknown,
                            .binary = std::nullopt,
                            .address = std::nullopt,
                            .functions = {},
                            .lines = {}});
  return frame;
}

}  // namespace gpusonde::agent
