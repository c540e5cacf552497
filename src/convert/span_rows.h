// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analyze/detail/spans.h"
#include "analyze/records.h"
#include "analyze/sorted_runs.h"
#include "base/id128.h"
#include "base/result.h"
#include "convert/name_store.h"
#include "convert/rows.h"
#include "importers/event.h"
#include "model/drops.h"

namespace gpusonde::convert {

using SpanRuns = analyze::SpanRuns;

// importers::Allocation, with its device.
struct DeviceAllocation {
  Id128 device;
  int64_t time_ns = 0;
  int64_t process = 0;
  int64_t address = 0;
  int64_t bytes = 0;  // negative: released
  int64_t tid = 0;
};
struct ByAllocationTime {
  static auto Key(const DeviceAllocation& a) {
    return std::tuple(a.time_ns, a.process, a.tid, a.address, a.bytes);
  }
  static uint64_t Radix(const DeviceAllocation& a) { return analyze::RadixOf(a.time_ns); }
  bool operator()(const DeviceAllocation& a, const DeviceAllocation& b) const { return Key(a) < Key(b); }
};
using AllocationRuns = analyze::SortedRuns<DeviceAllocation, ByAllocationTime>;

// Turns the spans and allocations of a trace into rows: calls and allocations with their stacks, waits,
// ranges, and the stacks themselves. The stack of a call is what was open on its thread when it began: Python
// functions, annotations, operators, calls; likewise of an allocation. Python functions have no rows of their
// own. Not thread-safe.
class SpanRows {
 public:
  // The names of NVTX domains by process and number.
  using DomainNames = std::map<std::pair<int64_t, int32_t>, std::string>;
  struct Process {
    Id128 id;
    // The device that its synchronizing calls wait for; none if the trace has records of waits, or if it is
    // not known which device that is.
    std::optional<Id128> awaited;
  };
  // Returns a span's process.
  using FindProcess = std::function<Process(int64_t process)>;
  // All must outlive it. Times of rows are those of spans plus `epoch_offset_ns`.
  SpanRows(NameStore& names, const DomainNames& domains, FindProcess find_process, int64_t epoch_offset_ns,
           Rows& rows, model::DropCounts& drops)
      : names_(names),
        domains_(domains),
        find_process_(std::move(find_process)),
        epoch_offset_ns_(epoch_offset_ns),
        rows_(rows),
        drops_(drops) {}

  // Both must be finished. Errors: those of reading them and of Rows.
  Status Write(const SpanRuns& spans, const AllocationRuns& allocations);

 private:
  // Deeper frames than this are left out: a trace may nest without end.
  static constexpr size_t kMaxOpen = 1'024;
  // A stack keeps this many of its innermost frames, as when CPUs are sampled.
  static constexpr size_t kMaxFrames = 127;
  // Rows of stacks and locations are written once while so many are remembered; keys make repeats harmless.
  static constexpr size_t kMaxRemembered = 500'000;

  // If there are more threads, those without open frames are forgotten, then all.
  static constexpr size_t kMaxThreads = 65'536;

  struct Open {
    int64_t end_ns = 0;
    Id128 location;
    Id128 stack;  // of the frames up to this one; only if it is among the hashed
  };
  struct Thread {
    std::vector<Open> open;  // outermost first
    size_t hashed = 0;       // how many of them have `stack`
  };

  Thread& ThreadOf(int64_t process, int64_t tid, int64_t time_ns);
  static void Close(Thread& thread, int64_t time_ns);
  void Push(Thread& thread, const importers::Span& span);
  // The stack of all open frames.
  Id128 StackOf(Thread& thread);
  Id128 LocationOf(const importers::Span& span);
  Id128 WriteLocation(importers::SpanKind kind, std::string_view name);
  Status Write(const importers::Span& span);
  Status Write(const DeviceAllocation& allocation);
  void WriteCall(const importers::Span& span, const Id128& stack);
  void WriteRange(const importers::Span& span);
  // "" without one; "domain 7" if the trace doesn't name it.
  std::string DomainOf(const importers::Span& span) const;
  bool Remember(const Id128& id);

  NameStore& names_;
  const DomainNames& domains_;
  FindProcess find_process_;
  int64_t epoch_offset_ns_;
  Rows& rows_;
  model::DropCounts& drops_;
  std::map<std::pair<int64_t, int64_t>, Thread> threads_;
  std::unordered_map<uint64_t, Id128> locations_;  // by kind and number of the name
  std::unordered_set<Id128> written_;
};

// What the frame of a span is called: without what differs from one run of the same code to the next, such as
// the number of a step, the address of an object, or the version that Nsight Systems appends to calls.
struct FrameName {
  std::string name;
  std::string file;  // of Python functions
  std::optional<int32_t> line;
};
FrameName FrameNameOf(importers::SpanKind kind, std::string_view name);

}  // namespace gpusonde::convert
