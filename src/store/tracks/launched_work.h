// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "model/timeline.h"
#include "store/store.h"

namespace gpusonde::store {

// Where a piece of GPU work ran, and when it started there.
struct WorkPlace {
  Id128 process;
  Id128 device;
  int64_t stream = 0;
  int64_t start_ns = 0;
};

// The call that started GPU work.
struct Launch {
  std::string name;
  int32_t tid = 0;
  std::string thread;  // its name
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::vector<std::string> stack;  // outermost first; empty where it wasn't sampled
};

struct LaunchedWork {
  model::GpuWork work;           // its name is demangled
  std::optional<Launch> launch;  // none: not recorded
};

// The work that started there and then; nothing if there is none. Of several (in a damaged file) the longest.
// Errors: those of Store::Query.
Result<std::optional<LaunchedWork>> ReadLaunchedWork(Store& store, const WorkPlace& place);

}  // namespace gpusonde::store
