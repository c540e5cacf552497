// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exporters/gpu_account.h"
#include "model/profile.h"

namespace gpusonde::exporters {

// What a recording says in ten lines, for the end of `gpusonde record`.
struct SummaryFacts {
  std::string command;  // what was recorded
  std::string path;     // the recording
  int64_t bytes = 0;    // its size
  int64_t duration_ns = 0;
  int32_t cpus = 0;
  double sampling_hz = 0;  // 0: CPUs were not sampled
  // What GPUs did; absent when they did nothing.
  std::optional<GpuFacts> gpu;
  // Times in which steps were slow, as sentences that say why; the worst first.
  std::vector<std::string> incidents;
  // What was lost, and what is there with less detail than it could have, as counts with a phrase each:
  // "12 Stacks cut at 127 frames".
  std::vector<std::string> lost;
  std::vector<std::string> poorer;
};

// At most ten lines, each ended by a newline: what was recorded; where GPUs worked how busy they were, what
// the CPU did while they were idle, and the hottest kernels with who launched them; why steps were slow; CPU
// use, busiest threads, hottest functions by self time (of a file without symbols all together); what is
// incomplete, and where to go on. Names are escaped (base/printable.h) and shortened.
std::string Summarise(const model::Profile& profile, const SummaryFacts& facts);

}  // namespace gpusonde::exporters
