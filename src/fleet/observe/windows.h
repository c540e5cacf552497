// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time_range.h"

namespace gpusonde::fleet {

// How much of a GPU's work is observed: all of it up to so many operations (kernels, copies and sets), of
// more the windows of a sample with about so many.
struct SampleSize {
  int64_t operations = 100'000;
  int64_t windows = 50;
};

// Chooses the windows of a sample: stratified by operations. All operations, in time order, are divided into
// equally many for each window, and the window is a random stretch of consecutive ones. Each operation has
// about the same chance to be observed, wherever in the range it ran: work in a few seconds of a day is
// found. Within a second, operations are taken as evenly spread. Not thread-safe.
class WindowChooser {
 public:
  // `total` > size.operations. The same seed chooses the same windows.
  WindowChooser(int64_t total, const SampleSize& size, uint64_t seed);

  // Adds a second in which `count` > 0 operations start. Seconds are rising. Rows come from files that anyone
  // may have written: times may be as late as numbers go.
  void Add(int64_t second_ns, int64_t count);

  // In time order, disjoint; fewer if the counts added don't sum to the total.
  std::vector<TimeRange> Finish();

 private:
  std::vector<double> edges_;  // in operations from the first one: begin and end of each window, rising
  std::vector<int64_t> times_ns_;
  double before_ = 0;  // operations of the seconds so far
  int64_t until_ns_ = 0;
};

}  // namespace gpusonde::fleet
