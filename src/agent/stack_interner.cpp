// SPDX-License-Identifier: Apache-2.0
#include "agent/stack_interner.h"

#include <fmt/format.h>

#include "agent/interleave.h"
#include "base/demangle.h"
#include "base/log.h"

namespace gpusonde::agent {
namespace {

// Of one file that is still being read: what is named when it was. Others are when they are sampled again.
constexpr size_t kMaxUnnamed = 10'000;

Id128 FileLocationId(const symbols::BinaryTable::Binary& binary, uint64_t offset) {
  return IdHasher("file").Add(binary.id).Add(offset).Finish();
}

// The row of a place in a file, without functions.
model::Location FileLocation(const symbols::BinaryTable::Binary& binary, uint64_t offset) {
  return {.location = FileLocationId(binary, offset),
          .kind = model::FrameKind::kNative,
          .binary = binary.id,
          .address = static_cast<int64_t>(offset),
          .functions = {},
          .lines = {}};
}

}  // namespace

StackInterner::StackInterner(KernelSymbolsLater kernel, symbols::BinaryTable& binaries,
                             symbols::LineClient& lines, Rows& rows, const Limits& limits)
    : kernel_later_(std::move(kernel)), binaries_(binaries), lines_(lines), rows_(rows), limits_(limits) {}

Id128 StackInterner::Intern(Process& process, const ebpf::RawStack& stack, model::DropCounts& drops) {
  if (process.runs_anonymous_code) process.jit->Refresh(process.info, drops);
  // What the raw frames mean changes with the mappings and with code made at run time: both are part of the
  // key.
  IdHasher key("raw");
  key.Add(process.id)
      .Add(process.mappings.generation())
      .Add(process.jit->version())
      .Add(stack.kernel().size())
      .Add(stack.user().size())
      .Add(uint64_t{stack.counts().native_end});
  for (const uint64_t word : stack.words()) key.Add(word);
  const Id128 raw = key.Finish();

  CachedStack made;
  if (const auto cached = by_raw_frames_.find(raw); cached != by_raw_frames_.end()) {
    made = cached->second;
  } else {
    if (by_raw_frames_.size() >= limits_.raw_stacks) by_raw_frames_.clear();
    if (written_ids() >= limits_.written_ids) Rewrite();
    bool is_pending = false;
    std::vector<Id128> locations;
    const auto add = [&](const Frame& frame) {
      locations.push_back(frame.location);
      made.unknown_mappings += frame.known_mapping ? 0 : 1;
      made.without_symbol +=
          frame.known_mapping && !frame.named && !frame.python && !frame.jit && !frame.pending ? 1 : 0;
      is_pending |= frame.pending;
      made.without_jit_name += !frame.named && frame.jit ? 1 : 0;
      made.without_python_name += !frame.named && frame.python ? 1 : 0;
    };
    for (const uint64_t address : stack.kernel()) add(KernelFrame(address));
    for (const Frame& frame : UserFrames(process, stack)) add(frame);
    if (made.without_jit_name > 0 && process.jit->Refresh(process.info, drops, true))
      return Intern(process, stack, drops);
    if (locations.empty()) add(UnknownFrame());
    made.stack = HashIds("stack", locations);
    if (stacks_.insert(made.stack).second)
      rows_.stacks.Append({.stack = made.stack, .locations = std::move(locations)});
    if (!is_pending) by_raw_frames_.emplace(raw, made);
  }
  drops.Add(model::DropReason::kUnknownMapping, made.unknown_mappings);
  drops.Add(model::DropReason::kNoSymbol, made.without_symbol);
  drops.Add(model::DropReason::kJitUnnamed, made.without_jit_name);
  drops.Add(model::DropReason::kPythonUnnamed, made.without_python_name);
  drops.Merge(unreadable_.Take());
  return made.stack;
}

std::vector<StackInterner::Frame> StackInterner::UserFrames(Process& process, const ebpf::RawStack& stack) {
  // A caller's frame holds the return address; the call is the instruction before it.
  const std::span<const uint64_t> native = stack.user();
  const auto address_of = [native](size_t i) { return i == 0 ? native[i] : native[i] - 1; };
  // An address outside all code isn't a frame, and those after it can't be trusted.
  size_t followed = 0;
  while (followed < native.size() && process.mappings.Find(address_of(followed)) != nullptr) ++followed;
  const bool outside = followed < native.size();
  const uint8_t end = stack.counts().native_end;
  const bool broken = end != GPUSONDE_NATIVE_COMPLETE && end != GPUSONDE_NATIVE_FRAME_POINTERS;

  const auto is_evaluator = [&](size_t i) {
    return process.python != nullptr && process.python->IsEvaluator(address_of(i));
  };
  std::vector<Frame> frames;
  bool missing = false;
  for (const MergedFrame& merged : Interleave(followed, is_evaluator, stack.python())) {
    switch (merged.kind) {
      case MergedFrame::Kind::kNative:
        frames.push_back(UserFrame(process, address_of(merged.index)));
        break;
      case MergedFrame::Kind::kPython:
        frames.push_back(PythonFrame(process, stack.python()[merged.index]));
        break;
      case MergedFrame::Kind::kMissing:
        frames.push_back(outside ? UnknownFrame() : MissingFrame());
        missing = true;
        break;
    }
  }
  if (!missing && outside) frames.push_back(UnknownFrame());
  if (!missing && !outside && broken) frames.push_back(MissingFrame());
  return frames;
}

const std::optional<symbols::KernelSymbols>& StackInterner::Kernel() {
  if (!kernel_later_.valid()) return kernel_;
  Result<symbols::KernelSymbols> loaded = kernel_later_.get();
  if (loaded.has_value())
    kernel_ = std::move(*loaded);
  else
    LogWarn("kernel functions are not named: {}", loaded.error().message);
  return kernel_;
}

Id128 StackInterner::UnknownStack() {
  const Id128 location = UnknownFrame().location;
  const Id128 stack = HashIds("stack", {&location, 1});
  if (stacks_.insert(stack).second) rows_.stacks.Append({.stack = stack, .locations = {location}});
  return stack;
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
  // The row was written without a name; now there is one, so a new row replaces it.
  if (!named || known->second) return false;
  known->second = true;
  return true;
}

Id128 StackInterner::WriteFunction(const Id128& scope, const std::string& system_name, uint64_t address,
                                   const symbols::SourceFrame& source) {
  const Id128 function = IdHasher("function").Add(scope).Add(system_name).Add(address).Finish();
  const bool has_file = !source.file.empty();
  const auto [known, added] = functions_.try_emplace(function, has_file);
  // The row was written without its file; now it is known, so a new row replaces it.
  if (!added && (known->second || !has_file)) return function;
  known->second = has_file;
  rows_.functions.Append({.function = function,
                          .name = Demangle(system_name),
                          .system_name = system_name,
                          .file = has_file ? std::optional(source.file) : std::nullopt,
                          .line = source.first_line > 0 ? std::optional(source.first_line) : std::nullopt});
  return function;
}

// Every Python file has a function "<module>".
std::string StackInterner::ShownName(const symbols::PythonCode& code) {
  if (code.name != "<module>") return code.name;
  return fmt::format("<module> {}", code.file.substr(code.file.rfind('/') + 1));
}

Id128 StackInterner::WritePythonFunction(const symbols::PythonCode& code) {
  const Id128 scope = IdHasher("python_file").Add(code.file).Finish();
  const Id128 function =
      IdHasher("function").Add(scope).Add(code.name).Add(static_cast<uint64_t>(code.first_line)).Finish();
  if (functions_.try_emplace(function, true).second)
    rows_.functions.Append({.function = function,
                            .name = ShownName(code),
                            .system_name = code.name,
                            .file = code.file,
                            .line = code.first_line});
  return function;
}

StackInterner::Frame StackInterner::KernelFrame(uint64_t address) {
  const auto symbol = Kernel().has_value() ? kernel_->Find(address) : std::nullopt;
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
  const symbols::BinaryTable::Binary& binary = *mapping.binary;
  const uint64_t offset = address - mapping.start + mapping.file_offset;
  Frame frame{.location = FileLocationId(binary, offset)};
  if (const auto known = locations_.find(frame.location); known != locations_.end() && known->second)
    return frame;

  const symbols::BinaryTable::Mapper mapper{.pid = process.info.pid, .user_id = process.info.user_id};
  if (!binaries_.Load(&binary, mapper).has_value()) unreadable_.Add(model::DropReason::kUnreadableBinary);
  if (binaries_.IsPending(&binary)) {
    frame.pending = true;
    frame.named = false;
    if (!IsNew(frame.location, false)) return frame;
    rows_.locations.Append(FileLocation(binary, offset));
    Unnamed& unnamed = unnamed_.try_emplace(&binary, Unnamed{mapper, {}}).first->second;
    if (unnamed.offsets.size() < kMaxUnnamed) unnamed.offsets.push_back(offset);
    return frame;
  }
  const std::optional<symbols::Symbol> symbol = binaries_.Find(&binary, offset);
  frame.named = symbol.has_value() && !symbol->name.empty();
  if (IsNew(frame.location, frame.named)) WriteFileLocation(binary, process.info.pid, offset);
  return frame;
}

void StackInterner::IngestSymbols(model::DropCounts& drops) {
  for (auto at = unnamed_.begin(); at != unnamed_.end();) {
    const auto& [binary, unnamed] = *at;
    symbols::BinaryTable::Mapper mapper = unnamed.mapper;
    mapper.wait = false;
    if (!binaries_.Load(binary, mapper).has_value()) unreadable_.Add(model::DropReason::kUnreadableBinary);
    if (binaries_.IsPending(binary)) {
      ++at;
      continue;
    }
    for (const uint64_t offset : unnamed.offsets)
      locations_[FileLocationId(*binary, offset)] = WriteFileLocation(*binary, mapper.pid, offset);
    at = unnamed_.erase(at);
  }
  drops.Merge(unreadable_.Take());
}

bool StackInterner::WriteFileLocation(const symbols::BinaryTable::Binary& binary, int32_t pid,
                                      uint64_t offset) {
  model::Location row = FileLocation(binary, offset);
  const std::optional<symbols::Symbol> symbol = binaries_.Find(&binary, offset);
  const bool is_named = symbol.has_value() && !symbol->name.empty();
  if (is_named) {
    row.functions = {WriteFunction(binary.id, symbol->name, symbol->address)};
    row.lines = {0};
  } else if (const auto start = binaries_.FindFunctionStart(&binary, offset); start.has_value()) {
    // Without a symbol: all of a function under one name.
    const std::string name = fmt::format("[{}+{:#x}]", binary.name, *start);
    row.functions = {WriteFunction(binary.id, name, *start)};
    row.lines = {0};
  }
  rows_.locations.Append(row);
  lines_.Ask(binary.id, pid, binary.path, offset,
             [&] { return symbols::BinaryTable::OpenFile(binary, pid); });
  return is_named;
}

size_t StackInterner::CountSchedulerWatchers(std::span<const uint64_t> kernel_frames) {
  if (kernel_frames.empty() || !Kernel().has_value()) return 0;
  for (size_t i = 0; i < kernel_frames.size(); ++i)
    if (const auto symbol = kernel_->Find(kernel_frames[i]);
        symbol.has_value() && symbol->name == "__schedule")
      return i;
  return 0;
}

void StackInterner::IngestLines(const symbols::LineClient::Answer& answer, model::DropCounts& drops) {
  using enum symbols::LineAnswer::Kind;
  if (answer.kind == kNoDebugInfo) drops.Add(model::DropReason::kNoDebugInfo);
  if (answer.kind == kUnreadable) drops.Add(model::DropReason::kDebugInfoFailed);
  const symbols::BinaryTable::Binary* binary = binaries_.FindById(answer.file);
  if (binary == nullptr || answer.frames.empty()) return;
  const std::optional<symbols::Symbol> symbol = binaries_.Find(binary, answer.offset);
  model::Location row = FileLocation(*binary, answer.offset);
  for (const symbols::SourceFrame& frame : answer.frames) {
    // The innermost frame keeps the symbol table's name and place, as it has without source lines.
    const bool called = &frame == &answer.frames.back() && symbol.has_value();
    const std::string& name = called ? symbol->name : frame.function;
    if (name.empty()) return;
    row.functions.push_back(WriteFunction(binary->id, name, called ? symbol->address : 0, frame));
    row.lines.push_back(frame.line);
  }
  locations_[row.location] = true;
  rows_.locations.Append(row);
}

StackInterner::Frame StackInterner::JitFrame(const Process& process, uint64_t address) {
  const std::optional<JitCode::Symbol> symbol = process.jit->Find(address);
  if (!symbol.has_value()) {
    Frame unnamed{.location = IdHasher("jit").Add(process.id).Finish(), .named = false, .jit = true};
    if (IsNew(unnamed.location, false))
      rows_.locations.Append({.location = unnamed.location,
                              .kind = model::FrameKind::kJit,
                              .binary = std::nullopt,
                              .address = std::nullopt,
                              .functions = {},
                              .lines = {}});
    return unnamed;
  }

  // JIT code moves and is overwritten, so it is identified by name and offset, not by address.
  const uint64_t offset = address - symbol->address;
  const symbols::SourceFrame source{.function = symbol->name, .file = symbol->file, .line = symbol->line};
  Frame frame{.location = IdHasher("jit").Add(process.id).Add(symbol->name).Add(offset).Finish(),
              .jit = true};
  if (IsNew(frame.location, true))
    rows_.locations.Append({.location = frame.location,
                            .kind = model::FrameKind::kJit,
                            .binary = std::nullopt,
                            .address = static_cast<int64_t>(address),
                            .functions = {WriteFunction(process.id, symbol->name, 0, source)},
                            .lines = {symbol->line}});
  return frame;
}

StackInterner::Frame StackInterner::PythonFrame(const Process& process, const gpusonde_python_frame& raw) {
  const uint32_t instruction = raw.instruction & GPUSONDE_PYTHON_INSTRUCTION;
  const symbols::PythonCode* code = process.python == nullptr ? nullptr : process.python->Find(raw);
  IdHasher hasher("python");
  if (code != nullptr)
    hasher.Add(code->file)
        .Add(code->name)
        .Add(static_cast<uint64_t>(code->first_line))
        .Add(uint64_t{instruction});
  Frame frame{.location = hasher.Finish(), .named = code != nullptr, .python = true};
  if (!IsNew(frame.location, frame.named)) return frame;

  model::Location row{.location = frame.location,
                      .kind = model::FrameKind::kPython,
                      .binary = std::nullopt,
                      .address = std::nullopt,
                      .functions = {},
                      .lines = {}};
  if (code != nullptr) {
    row.functions = {WritePythonFunction(*code)};
    row.lines = {code->LineOf(instruction)};
  }
  rows_.locations.Append(row);
  return frame;
}

// Shown like an unknown frame, but counted by the reason why unwinding stopped.
StackInterner::Frame StackInterner::MissingFrame() { return {.location = UnknownFrame().location}; }

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
