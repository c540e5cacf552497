// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "analyze/records.h"
#include "analyze/sorted_runs.h"
#include "importers/event.h"

namespace gpusonde::analyze {

// By start; a span before those that it surrounds.
struct ByNesting {
  static auto Key(const importers::Span& s) {
    return std::tuple(s.start_ns, -s.end_ns, s.kind, s.process, s.tid, s.correlation, s.name, s.result);
  }
  static uint64_t Radix(const importers::Span& s) { return RadixOf(s.start_ns); }
  bool operator()(const importers::Span& a, const importers::Span& b) const { return Key(a) < Key(b); }
};
using SpanRuns = SortedRuns<importers::Span, ByNesting>;

// What a copy or set is called beside kernels: "[copy htod]", "[set]".
std::string_view NameOfTransfer(const GpuRecord& record);

}  // namespace gpusonde::analyze
