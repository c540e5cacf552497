// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/selection.h"
#include "store/store.h"

namespace gpusonde::store {

// What launch threads did while GPUs were idle, by the ranges, operators and calls of the data: traces have
// no samples of CPUs, but all of these.
struct LaunchThreadsWhileIdle {
  struct Part {
    std::string range;  // the innermost range or operator, without a number at its end; "": none
    std::string call;   // the call in it; "": none
    int64_t time_ns = 0;
  };
  int64_t idle_ns = 0;      // the sum of the parts
  std::vector<Part> parts;  // falling by time_ns
};

// Of each gap in the selection's work on a device: what the thread did that launched the work after it. Gaps
// before work whose call is unknown don't count, nor does time before the first work. With no parts if calls
// were sampled, as in recordings of `record`; nothing if there is too much to read (kMaxIdleRows). Errors:
// those of Store::Query.
Result<std::optional<LaunchThreadsWhileIdle>> ReadLaunchThreadsWhileIdle(Store& store,
                                                                         const model::Selection& selection);

// Work, calls and ranges, together.
inline constexpr int64_t kMaxIdleRows = 3'000'000;

}  // namespace gpusonde::store
