// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "analyze/detail/critical_path.h"
#include "analyze/records.h"
#include "importers/event.h"

namespace gpusonde::analyze {

// What happened in a stretch of time on one device, and on the threads of its process.
struct PathEvents {
  std::vector<LaunchedRecord> gpu;
  std::vector<importers::Span> spans;  // calls, operators, ranges; their tid is the number of their thread
};

// Names and kinds that the walk needs.
struct PathNames {
  std::function<std::string_view(const GpuRecord&)> of_work;
  std::function<std::string_view(uint32_t)> of_span;
  std::function<bool(uint32_t)> is_communication;  // of a kernel's name
};

// Whether a call of this name returns only once work on the device has ended.
bool WaitsForDevice(std::string_view call);

// Walks back from `path.end_ns` to `path.begin_ns` and fills in the rest of the path. `from`: the event whose
// start, or if it `ends` there, whose end is the path's.
void WalkPath(PathEvents events, const LaunchedRecord& from, bool ends, const PathNames& names,
              CriticalPath& path);

}  // namespace gpusonde::analyze
