// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "analyze/records.h"
#include "base/saturated.h"

namespace gpusonde::analyze {

// Idle time by what ended it. `host`: the call that launched the next event began only after the previous
// work had ended. `back_to_back`: otherwise, if under 30 µs, which the device needs between two events.
// `device`: otherwise; it waited for something else, such as another stream. `unknown`: no call is known.
struct IdleTime {
  // HTA's documents say 30 ns, its code uses 30 µs; nsys's gpu_gaps has no such class.
  static constexpr int64_t kBackToBackNs = 30'000;

  int64_t host_ns = 0;
  int64_t back_to_back_ns = 0;
  int64_t device_ns = 0;
  int64_t unknown_ns = 0;

  // The time before this event, which is the next one; `work_ended_ns` is before its start.
  void Add(const LaunchedRecord& record, int64_t work_ended_ns) {
    const int64_t gap_ns = record.gpu.start_ns - work_ended_ns;
    int64_t* cause = &unknown_ns;
    if (record.has_call != 0 && record.call_start_ns > work_ended_ns)
      cause = &host_ns;
    else if (gap_ns < kBackToBackNs)
      cause = &back_to_back_ns;
    else if (record.has_call != 0)
      cause = &device_ns;
    *cause = AddSaturated(*cause, gap_ns);
  }
  void Merge(const IdleTime& other) {
    host_ns = AddSaturated(host_ns, other.host_ns);
    back_to_back_ns = AddSaturated(back_to_back_ns, other.back_to_back_ns);
    device_ns = AddSaturated(device_ns, other.device_ns);
    unknown_ns = AddSaturated(unknown_ns, other.unknown_ns);
  }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(host_ns);
    archive(back_to_back_ns);
    archive(device_ns);
    archive(unknown_ns);
    archive.Require(host_ns >= 0 && back_to_back_ns >= 0 && device_ns >= 0 && unknown_ns >= 0);
  }
};

}  // namespace gpusonde::analyze
