// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/sketch.h"

namespace gpusonde::analyze {

// How often a duration occurs.
struct ValueCount {
  int64_t value_ns = 0;
  uint64_t count = 0;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(value_ns);
    archive(count);
  }
};

// Whether a sketch is too coarse for a distribution: its buckets are up to 1.6 % wide, as wide as the
// deviation of kernels that vary by less than 5 %.
bool IsStable(const model::Sketch& durations);

// Counts durations of a stable kernel in a second pass, when their sketch is known: near the median in up to
// 4,096 cells, of 1 ns each where that suffices (medians up to 60 µs), elsewhere as a sketch does. The result
// depends only on the durations and the sketch. Memory: 16 KiB.
class FineCounts {
 public:
  explicit FineCounts(const model::Sketch& all);

  void Add(int64_t duration_ns) {
    const uint64_t cell = static_cast<uint64_t>(duration_ns - lowest_ns_) >> shift_;
    if (cell < cells_.size())
      ++cells_[cell];
    else
      outside_.Add(duration_ns);
  }
  // By value; a cell or bucket is its middle.
  std::vector<ValueCount> Finish() const;

 private:
  int64_t lowest_ns_ = 0;
  int shift_ = 0;  // cells are 2^shift ns wide
  std::vector<uint32_t> cells_;
  model::Sketch outside_;
};

// Adds counts that are sorted by value to others that are.
void MergeCounts(std::vector<ValueCount>& counts, std::span<const ValueCount> more);

// 1.4826 · the median absolute deviation / the median of counts sorted by value, lower medians; 0 if the
// median is.
double RobustVariation(std::span<const ValueCount> counts);

}  // namespace gpusonde::analyze
