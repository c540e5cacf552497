// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/fingerprint.h"
#include "fleet/histogram.h"

namespace gpusonde::fleet {

// What a device observed of one GPU in a range of time: all that its report is made from.
struct Observation {
  std::string gpu_uuid;  // as the driver reports it; of a GPU known only from its work 32 hex digits
  std::string gpu_name;
  bool is_busy = false;       // any kernel, copy or set ran
  uint64_t kernels = 0;       // that were looked at, a sample if there were many
  Fingerprint fingerprint{};  // all zeros without a kernel
  std::vector<Row> rows;      // by group of characteristics, OpenCharacteristics() of them

  bool operator==(const Observation&) const = default;
};

// What gpusonde observed of a node's GPUs in a range of time.
struct Observations {
  int64_t observed_ns = 0;  // for how long of the range gpusonde ran
  std::vector<Observation> gpus;

  bool operator==(const Observations&) const = default;
};

// Bound on the GPUs of a node, MIG instances included.
inline constexpr size_t kMaxObservedGpus = 1024;

// Observations as JSON: {"version": 1, "observed_ns": 3600000000000, "observations": [{"gpu_uuid": …,
// "gpu_name": …, "busy": true, "kernels": 96011, "fingerprint": [256 whole numbers], "rows": [[64 whole
// numbers], …]}, …]}.
std::string ToJson(const Observations& observations);

// Errors: kInvalidArgument, naming the GPU, for anything else: other keys, too many GPUs, GPUs that are there
// twice, fingerprints that are longer than kFingerprintLength allows, and rows that Measure can't return.
// kTooNew for another version.
Result<Observations> ParseObservations(std::string_view json);

}  // namespace gpusonde::fleet
