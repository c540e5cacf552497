// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fleet/histogram.h"

// What a device may report in an epoch: one group of characteristics, as a histogram of 63 bins over its
// GPU's work. Bin 0 always means that nothing was measured: no work, no such counter, no such copy.
namespace gpusonde::fleet {

// A GPU's work during an observation. Names must outlive it.
struct GpuWork {
  struct Kernel {
    std::string_view name;
    uint64_t blocks = 0;
    uint32_t threads_per_block = 0;
    uint32_t registers_per_thread = 0;  // 0: not known
    uint32_t shared_bytes_per_block = 0;
    int64_t duration_ns = 0;
  };
  enum class Direction : uint8_t { kToDevice, kFromDevice, kWithinDevice };
  struct Copy {
    Direction direction = Direction::kToDevice;
    int64_t bytes = 0;
    int64_t duration_ns = 0;
  };
  // One reading of the hardware's counters: shares of the time, 0 to 1.
  struct Activity {
    double sm = 0;
    double tensor = 0;
    double dram = 0;
  };
  // Properties of the values in a sampled copy (ProfileValues).
  struct Values {
    double zeros = 0;           // share of all, 0 to 1
    double repeats = 0;         // share that equals the previous value
    double exponent_range = 0;  // of nonzero values: largest minus smallest binary exponent, 0 to 255
  };

  std::vector<Kernel> kernels;
  std::vector<Copy> copies;
  std::vector<Activity> activity;
  std::vector<Values> values;
};

// A group; the function that fills its bins defines them.
struct Characteristic {
  std::string_view name;     // stable, in results: "kernel_durations"
  std::string_view meaning;  // what is counted, in which bins
  void (*measure)(const GpuWork& work, Bins& bins);
  bool opt_in = false;  // measured only if the owner enables it, as it reads data
};

// All groups, by their numbers in epochs; opt-in groups are last.
std::span<const Characteristic> Characteristics();
// The number of groups that need no opt-in.
uint32_t OpenCharacteristics();

// The row of a report. group < Characteristics().size().
Row Measure(uint32_t group, const GpuWork& work);

// Properties of a sampled copy of 32-bit floating-point numbers. Values that are not finite count as neither
// zero nor in the exponent range.
GpuWork::Values ProfileValues(std::span<const float> values);

}  // namespace gpusonde::fleet
