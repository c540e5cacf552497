// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "model/tables/devices.h"
#include "model/tables/incidents.h"
#include "model/tables/metrics.h"
#include "model/tables/processes.h"
#include "model/tables/steps.h"
#include "model/tables/threads.h"

// What happened when: the events of a recording one after another, as viewers of traces show them.
namespace gpusonde::model {

// Who the events belong to. Events may name processes, threads and devices that are not listed.
struct TimelineNames {
  int64_t start_ns = 0;  // of the time exported; events hardly begin earlier
  std::vector<Process> processes;
  std::vector<Thread> threads;
  std::vector<Device> devices;  // by ordinal
};

// A kernel, copy or set. Times are not negative, and `end_ns` is not before `start_ns`.
struct GpuWork {
  enum class Kind : uint8_t { kKernel, kMemcpy, kMemset };
  Kind kind{};
  Id128 process;
  Id128 device;
  int32_t session = 0;
  int64_t correlation = 0;  // negative: unknown
  int64_t context = 0;
  int64_t stream = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::optional<int64_t> graph_node;
  // Of a kernel.
  std::string name;  // mangled
  std::array<int64_t, 3> grid{};
  std::array<int64_t, 3> block{};
  std::optional<int64_t> registers;
  std::optional<int64_t> shared_bytes;  // static and dynamic
  // Of a copy or set.
  int64_t bytes = 0;
  std::string copy;  // kind, source_memory and target_memory as in table memcpys
  std::string source_memory;
  std::string target_memory;
};

// What a thread did: a call of an API or a range of its program. Times are as those of GpuWork.
struct ThreadSpan {
  // kStartEnd: an NVTX range that may end on another thread; it doesn't nest in others.
  enum class Kind : uint8_t { kCall, kAnnotation, kOperator, kStartEnd };
  Kind kind{};
  Id128 process;
  int32_t tid = 0;
  int32_t session = 0;
  int64_t correlation = -1;  // of a call; negative: unknown
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::string domain;  // of a call cuda_runtime, cuda_driver or os; of a range NVTX's
  std::string name;
};

// Receives a timeline: Begin, then events in any order of their types, then End. GPU work is ordered by
// start; so are spans, where of those that start together the longest is first. Any error ends the timeline.
class TimelineSink {
 public:
  virtual ~TimelineSink() = default;
  virtual Status Begin(const TimelineNames& names) = 0;
  virtual Status Add(const GpuWork& work) = 0;
  virtual Status Add(const ThreadSpan& span) = 0;
  virtual Status Add(const Step& step) = 0;
  virtual Status Add(const Incident& incident) = 0;  // its end is known
  virtual Status Add(const MetricValue& value) = 0;
  virtual Status End() = 0;
};

}  // namespace gpusonde::model
