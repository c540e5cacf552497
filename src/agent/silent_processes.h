// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "base/id128.h"
#include "model/batch.h"
#include "model/tables/signals.h"

namespace gpusonde::agent {

// Profiled processes whose first thread has done nothing for two seconds: the kernel reports what a thread
// waited for when it goes on, so whether it is stopped, or blocked in the kernel, is read from /proc until
// then. Needs no privileges. Not thread-safe.
class SilentProcesses {
 public:
  // The first thread of a process did something. `now_ns`: CLOCK_MONOTONIC, as below.
  void Heard(int32_t pid, int64_t now_ns);

  // Once a second, appends `process.stopped` or `process.blocked` for the time since the last reading of each
  // silent process that is in that state: of at most 64. `identify` maps a pid to a process; `stops_known`
  // says of which ones another part writes `process.stopped`.
  void Write(const Id128& source, int64_t epoch_offset_ns, int64_t now_ns,
             const std::function<std::optional<Id128>(int32_t pid)>& identify,
             const std::function<bool(int32_t pid)>& stops_known,
             model::BatchBuilder<decltype(model::kSignals)>& rows);

 private:
  std::map<int32_t, int64_t> heard_ns_;
  int64_t read_ns_ = 0;  // 0: never
};

}  // namespace gpusonde::agent
