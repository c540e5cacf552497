// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/timeline/host_gaps.h"
#include "base/time_range.h"

namespace gpusonde::analyze {

// How the names of ranges begin in which a program waits for PyTorch's data loader
// (torch/utils/data/dataloader.py, _profile_name). Others' names don't tell whether the thread that launches
// work waits, or one that loads in advance.
inline constexpr std::string_view kLoaderWait = "enumerate(DataLoader)#";

// How long a device was idle while the host waited for a data loader.
struct LoaderWaits {
  static constexpr size_t kLongest = 3;

  int64_t count = 0;
  int64_t total_ns = 0;      // of the ranges
  int64_t idle_ns = 0;       // of gaps in which the host had launched nothing, the part within ranges
  std::vector<Gap> longest;  // of those parts, at most kLongest, longest first

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(count);
    archive(total_ns);
    archive(idle_ns);
    archive(longest);
    for (const Gap& gap : longest) archive.Require(gap.begin_ns < gap.end_ns);
  }
};

// Finds them along a rank's timeline.
class LoaderFollower {
 public:
  // The waits by the host's clock, sorted and disjoint; `gpu_ahead_ns` is added.
  LoaderFollower(const std::vector<TimeRange>& waits, int64_t gpu_ahead_ns);

  // An event, by start time, and when all work before it had ended.
  void Add(const LaunchedRecord& record, int64_t work_ended_ns) {
    if (next_ < waits_.size() && IsHostGap(record, work_ended_ns)) AddGap(work_ended_ns, record.gpu.start_ns);
  }
  LoaderWaits Finish() && { return std::move(result_); }

 private:
  void AddGap(int64_t begin_ns, int64_t end_ns);

  std::vector<TimeRange> waits_;
  size_t next_ = 0;  // the first that may still overlap a gap
  LoaderWaits result_;
};

}  // namespace gpusonde::analyze
