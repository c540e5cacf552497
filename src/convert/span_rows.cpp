// SPDX-License-Identifier: Apache-2.0
#include "convert/span_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "analyze/sync_calls.h"
#include "base/text.h"
#include "base/utf8.h"
#include "model/span_name.h"

namespace gpusonde::convert {
namespace {

using importers::Span;
using importers::SpanKind;

bool IsCall(SpanKind kind) { return kind == SpanKind::kCall || kind == SpanKind::kOsCall; }

// Ranges that were started and ended by hand may overlap others.
bool IsFrame(const Span& span) { return span.kind != SpanKind::kNvtxStartEnd && span.has_end != 0; }

std::string_view RangeKindOf(SpanKind kind) {
  switch (kind) {
    case SpanKind::kNvtxPushPop:
      return "nvtx_push_pop";
    case SpanKind::kNvtxStartEnd:
      return "nvtx_start_end";
    case SpanKind::kOperator:
      return "operator";
    default:
      return "annotation";
  }
}

// "cuLaunchKernel" but not "cudaLaunchKernel"; nvprof's calls only have numbers.
std::string_view DomainOfCall(const Span& span, std::string_view name) {
  if (span.kind == SpanKind::kOsCall) return "os";
  const bool of_driver = name.starts_with("driver") ||
                         (name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z');
  return of_driver ? "cuda_driver" : "cuda_runtime";
}

// What a waiting call waits for, as syncs.kind.
std::string_view WaitOf(std::string_view call) {
  return call.contains("Stream") ? "stream" : call.contains("Event") ? "event" : "context";
}

// "torch/nn/modules/module.py(1736): _wrapped_call_impl".
bool ReadPythonName(std::string_view text, FrameName& frame) {
  const size_t close = text.find("): ");
  const size_t open = close == std::string_view::npos ? close : text.rfind('(', close);
  if (open == std::string_view::npos || open == 0) return false;
  const std::optional<int32_t> line = ParseNumber<int32_t>(text.substr(open + 1, close - open - 1));
  if (!line.has_value()) return false;
  frame.file = text.substr(0, open);
  frame.line = line;
  frame.name = text.substr(close + 3);
  return true;
}

}  // namespace

FrameName FrameNameOf(SpanKind kind, std::string_view name) {
  FrameName frame;
  if (kind == SpanKind::kPython) {
    if (ReadPythonName(name, frame)) return frame;
    // "<built-in method run_backward of torch._C._EngineBase object at 0x7f…>"
    const size_t address = name.find(" at 0x");
    frame.name = name.substr(0, address);
    if (address != std::string_view::npos && name.ends_with('>')) frame.name += '>';
    return frame;
  }
  name = IsCall(kind) ? model::WithoutVersion(name) : model::RepeatedName(name);
  frame.name = name;
  return frame;
}

Status SpanRows::Write(const SpanRuns& spans, const AllocationRuns& allocations) {
  analyze::Merged<Span, analyze::ByNesting> merged(spans.runs());
  analyze::Merged<DeviceAllocation, ByAllocationTime> merged_allocations(allocations.runs());
  const DeviceAllocation* allocation = merged_allocations.Next();
  while (const Span* span = merged.Next()) {
    // An allocation has the frames that begin when it happens, too.
    for (; allocation != nullptr && allocation->time_ns < span->start_ns;
         allocation = merged_allocations.Next())
      TRY(Write(*allocation));
    TRY(Write(*span));
  }
  TRY(merged.status());
  for (; allocation != nullptr; allocation = merged_allocations.Next()) TRY(Write(*allocation));
  TRY(merged_allocations.status());
  return names_.status();
}

Status SpanRows::Write(const Span& span) {
  Thread& thread = ThreadOf(span.process, span.tid, span.start_ns);
  if (IsFrame(span)) Push(thread, span);
  if (IsCall(span.kind))
    WriteCall(span, StackOf(thread));
  else if (span.kind != SpanKind::kPython)
    WriteRange(span);
  return rows_.PassFull();
}

Status SpanRows::Write(const DeviceAllocation& allocation) {
  Thread& thread = ThreadOf(allocation.process, allocation.tid, allocation.time_ns);
  rows_.allocations.Append({.process = find_process_(allocation.process).id,
                            .tid = static_cast<int32_t>(allocation.tid),
                            .device = allocation.device,
                            .time_ns = allocation.time_ns + epoch_offset_ns_,
                            .address = allocation.address,
                            .bytes = std::abs(allocation.bytes),
                            .released = allocation.bytes < 0,
                            .stack = thread.open.empty() ? std::nullopt : std::optional(StackOf(thread))});
  return rows_.PassFull();
}

// A thread, with the frames that are open at this time.
SpanRows::Thread& SpanRows::ThreadOf(int64_t process, int64_t tid, int64_t time_ns) {
  if (threads_.size() > kMaxThreads) {
    std::erase_if(threads_, [&](const auto& entry) {
      return entry.second.open.empty() || entry.second.open.front().end_ns <= time_ns;
    });
    if (threads_.size() > kMaxThreads) threads_.clear();
  }
  Thread& thread = threads_[{process, tid}];
  Close(thread, time_ns);
  return thread;
}

void SpanRows::Close(Thread& thread, int64_t time_ns) {
  while (!thread.open.empty() && thread.open.back().end_ns <= time_ns) thread.open.pop_back();
  thread.hashed = std::min(thread.hashed, thread.open.size());
}

void SpanRows::Push(Thread& thread, const Span& span) {
  if (thread.open.size() == kMaxOpen) {
    drops_.Add(model::DropReason::kStackTruncated);
    return;
  }
  // Times of whole microseconds let a child end after its parent; it must not outlive it here.
  const int64_t end_ns = thread.open.empty() ? span.end_ns : std::min(span.end_ns, thread.open.back().end_ns);
  thread.open.push_back({.end_ns = end_ns, .location = LocationOf(span), .stack = {}});
}

Id128 SpanRows::StackOf(Thread& thread) {
  for (; thread.hashed < thread.open.size(); ++thread.hashed) {
    Open& frame = thread.open[thread.hashed];
    const Id128 below = thread.hashed == 0 ? Id128{} : thread.open[thread.hashed - 1].stack;
    frame.stack = HashIds("nested stack", std::array{frame.location, below});
  }
  const Id128 stack = thread.open.back().stack;
  if (!Remember(stack)) return stack;
  std::vector<Id128> locations;
  for (size_t i = thread.open.size(); i-- > 0 && locations.size() < kMaxFrames;)
    locations.push_back(thread.open[i].location);
  if (locations.size() < thread.open.size()) drops_.Add(model::DropReason::kStackTruncated);
  rows_.stacks.Append({.stack = stack, .locations = std::move(locations)});
  return stack;
}

Id128 SpanRows::LocationOf(const Span& span) {
  if (!NameStore::IsUnique(span.name)) return WriteLocation(span.kind, names_.Get(span.name));
  const uint64_t key = uint64_t{span.name} << 8 | static_cast<uint8_t>(span.kind);
  const auto [known, is_new] = locations_.try_emplace(key);
  if (is_new) known->second = WriteLocation(span.kind, names_.Get(span.name));
  return known->second;
}

Id128 SpanRows::WriteLocation(SpanKind kind, std::string_view name) {
  const FrameName frame = FrameNameOf(kind, name);
  const auto frame_kind = kind == SpanKind::kPython ? model::FrameKind::kPython : model::FrameKind::kNative;
  model::Function function{.function = {},
                           .name = ToUtf8(frame.name),
                           .system_name = ToUtf8(frame.name),
                           .file = frame.file.empty() ? std::nullopt : std::optional(ToUtf8(frame.file)),
                           .line = frame.line};
  function.function = IdHasher("function of a trace")
                          .Add(frame.file)
                          .Add(frame.name)
                          .Add(static_cast<uint64_t>(frame.line.value_or(0)))
                          .Finish();
  const Id128 location = IdHasher("location of a trace")
                             .Add(model::EnumNames<model::FrameKind>::Name(frame_kind))
                             .Add(function.function)
                             .Finish();
  if (!Remember(location)) return location;
  rows_.functions.Append(function);
  rows_.locations.Append({.location = location,
                          .kind = frame_kind,
                          .binary = std::nullopt,
                          .address = std::nullopt,
                          .functions = {function.function},
                          .lines = {0}});
  return location;
}

void SpanRows::WriteCall(const Span& span, const Id128& stack) {
  const std::string_view name = names_.Get(span.name);
  const Process process = find_process_(span.process);
  // GPU work without an id has −1: it must not be joined to calls without one.
  const int64_t correlation = span.correlation == importers::kNoCorrelation ? -2 : span.correlation;
  const int64_t start_ns = span.start_ns + epoch_offset_ns_, end_ns = span.end_ns + epoch_offset_ns_;
  if (process.awaited.has_value() && analyze::IsWaitCall(name))
    rows_.syncs.Append({.process = process.id,
                        .device = *process.awaited,
                        .session = 1,
                        .correlation = correlation,
                        .start_ns = start_ns,
                        .end_ns = end_ns,
                        .kind = std::string(WaitOf(name))});
  rows_.api_calls.Append({.process = process.id,
                          .tid = span.tid,
                          .session = 1,
                          .correlation = correlation,
                          .start_ns = start_ns,
                          .end_ns = end_ns,
                          .domain = std::string(DomainOfCall(span, name)),
                          .name = ToUtf8(name),
                          .result = span.has_result != 0 ? std::optional(span.result) : std::nullopt,
                          .stack = stack,
                          .probability = 1});
}

void SpanRows::WriteRange(const Span& span) {
  rows_.ranges.Append(
      {.process = find_process_(span.process).id,
       .tid = span.tid,
       .start_ns = span.start_ns + epoch_offset_ns_,
       .end_ns = span.has_end != 0 ? std::optional(span.end_ns + epoch_offset_ns_) : std::nullopt,
       .kind = std::string(RangeKindOf(span.kind)),
       .domain = DomainOf(span),
       .name = ToUtf8(names_.Get(span.name))});
}

std::string SpanRows::DomainOf(const Span& span) const {
  const bool is_nvtx = span.kind == SpanKind::kNvtxPushPop || span.kind == SpanKind::kNvtxStartEnd;
  if (!is_nvtx || span.result == 0) return "";
  const auto known = domains_.find({span.process, span.result});
  return known != domains_.end() ? known->second : fmt::format("domain {}", span.result);
}

// True the first time, as far as it is remembered.
bool SpanRows::Remember(const Id128& id) {
  if (written_.size() == kMaxRemembered) written_.clear();
  return written_.insert(id).second;
}

}  // namespace gpusonde::convert
