// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fleet/histogram.h"

// What a device can be asked in an epoch: one group of characteristics, as a histogram of 63 bins over what
// its GPU did. Bin 0 is always "nothing of it was measured": no work, no such counter, no such copy.
namespace gpusonde::fleet {

// What a GPU did while it was looked at. Names must outlive it.
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
  // Of the values in one sampled copy (ProfileValues).
  struct Values {
    double zeros = 0;           // share of all, 0 to 1
    double repeats = 0;         // share that equals the one before
    double exponent_range = 0;  // of those that aren't zero: largest less smallest exponent of two, 0 to 255
  };

  std::vector<Kernel> kernels;
  std::vector<Copy> copies;
  std::vector<Activity> activity;
  std::vector<Values> values;
};

// One group; its bins are declared once, by how it fills them.
struct Characteristic {
  std::string_view name;     // stable, in results: "kernel_durations"
  std::string_view meaning;  // what is counted, in which bins
  void (*measure)(const GpuWork& work, Bins& bins);
  bool opt_in = false;  // measured only where the owner asks for it: it looks at data
};

// All groups, in the order in which epochs number them; those to opt in come last.
std::span<const Characteristic> Characteristics();
// How many of them need no opting in.
uint32_t OpenCharacteristics();

// The row of a report. group < Characteristics().size().
Row Measure(uint32_t group, const GpuWork& work);

// What a sampled copy of 32-bit floating-point numbers holds. Not finite: counted as neither zero nor in
// range.
GpuWork::Values ProfileValues(std::span<const float> values);

}  // namespace gpusonde::fleet
