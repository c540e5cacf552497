// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/time_range.h"
#include "diagnose/work.h"

namespace gpusonde::diagnose {

// The GPU time of a program over the last minutes, by name of its kernels and by kind of its copies, so that
// an incident can say what has grown. Only the longest of each quarter of a second are kept, and a name
// beyond the table's bound is not counted. Not thread-safe.
class GpuTimeByName {
 public:
  // Pieces of work that differ by their times only. Ranges and syncs are no GPU time.
  void Ingest(const Work& work, std::span<const WorkTime> times);

  // Returns the time that work of each name took in `range`, as a share of its length; a share above 1 means
  // that several pieces ran at once. Work counts when it ends. Names of kernels are as CUPTI reports them.
  std::map<std::string, double> SharesIn(TimeRange range) const;

  void ForgetBefore(int64_t time_ns);

 private:
  using Bucket = std::unordered_map<uint32_t, int64_t>;  // ns by index of the name

  Bucket& BucketAt(int64_t start_ns);

  std::deque<std::string> names_;
  std::unordered_map<std::string_view, uint32_t>
      by_name_;                        // the keys point into names_, whose elements never move
  std::map<int64_t, Bucket> buckets_;  // by start
};

}  // namespace gpusonde::diagnose
