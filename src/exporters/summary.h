// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exporters/gpu_account.h"
#include "model/profile.h"

namespace gpusonde::exporters {

// Input of the ten-line summary at the end of `gpusonde record`.
struct SummaryFacts {
  std::string command;  // what was recorded
  std::string path;     // the recording
  int64_t bytes = 0;    // its size
  int64_t duration_ns = 0;
  int32_t cpus = 0;
  double sampling_hz = 0;  // 0: CPUs were not sampled
  // GPU work; absent if there was none.
  std::optional<GpuFacts> gpu;
  // The program whose steps took the most time; absent if none were found.
  struct Steps {
    std::string process;
    int64_t count = 0;
    double time_ns = 0;                                 // of one, usually
    double between_ns = 0;                              // of the waits before one that aren't part of it
    std::vector<std::pair<std::string, double>> parts;  // of that time: label and ns, the longest first
    int64_t other_loops = 0;                            // of the same process, with steps
    int64_t other_processes = 0;                        // the same
  };
  std::optional<Steps> steps;
  // Sentences of the incidents (slow steps and their cause), and of what disturbs all steps, worst first.
  std::vector<std::string> incidents;
  struct Drop {
    std::string meaning;  // one sentence, as model::DropInfo has it
    int64_t count = 0;
  };
  std::vector<Drop> lost;    // data is missing
  std::vector<Drop> poorer;  // data is less detailed than it could be
};

// At most ten lines, each ended by a newline: what was recorded; if GPUs worked, how busy they were, what the
// CPU did while they were idle, and the hottest kernels with the lines that launched them; what steps take
// their time for, and why some were slow; CPU use, busiest threads, hottest functions by self time (a file
// without symbols counts as one); what is incomplete, and the next command. Names are escaped
// (base/printable.h) and shortened.
std::string Summarise(const model::Profile& profile, const SummaryFacts& facts);

}  // namespace gpusonde::exporters
