// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "base/id128.h"
#include "model/timeline.h"

// How events are named and joined, the same in every format of timelines. Not thread-safe.
namespace gpusonde::exporters {

// Names of GPU work as Kineto writes them: a kernel's demangled, "Memcpy HtoD (Pinned -> Device)", "Memset".
// Valid UTF-8.
class WorkNames {
 public:
  // Valid until the next call.
  const std::string& Of(const model::GpuWork& work);

 private:
  std::unordered_map<std::string, std::string> kernels_;  // demangled, by mangled name
  std::string name_;                                      // of the last copy or set
};

// Whether a call of this name may start GPU work: launches, copies and sets, of CUDA or HIP.
bool StartsWork(const model::ThreadSpan& call);

// Makes correlation ids unique over processes and sessions: those of the first session stay as they are, so
// that a trace of one process has CUPTI's own. Below 2^53, so that JavaScript reads them exactly.
class Correlations {
 public:
  // Empty for an unknown id, and for those of more than 2^21 sessions. Ids with other bits above the lowest
  // 32, which CUPTI's don't have, count as other sessions.
  std::optional<uint64_t> IdOf(Id128 process, int32_t session, int64_t correlation);

 private:
  // By process, session and the upper bits of ids.
  std::map<std::tuple<Id128, int32_t, int64_t>, uint64_t> sessions_;
};

}  // namespace gpusonde::exporters
