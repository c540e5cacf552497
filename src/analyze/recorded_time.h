// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "analyze/extent.h"
#include "base/time_range.h"
#include "importers/event.h"

namespace gpusonde::analyze {

// Within the bounds of the times that events may have, which files from elsewhere may not keep.
constexpr bool IsValid(const TimeRange& range) {
  return -importers::kMaxTimeNs <= range.from_ns && range.to_ns <= importers::kMaxTimeNs;
}

// The times at which a trace has events, of any kind and process, to find those at which it has none. The
// gaps don't depend on the order in which events are added. Memory: 128 KiB.
class RecordedTime {
 public:
  // Shorter gaps aren't found, nor those below a 1,024th of the time from the first start to the last end.
  static constexpr int64_t kMinGapNs = 1'000'000'000;

  void Cover(int64_t start_ns, int64_t end_ns) {
    if (start_ns < recent_.first_ns - kMinGapNs || end_ns > recent_.last_ns + kMinGapNs) Keep();
    recent_.Cover(start_ns, end_ns);
  }
  void Merge(const RecordedTime& other);

  // From the first start to the last end.
  Extent extent() const;
  // At least so long; sorted.
  std::vector<TimeRange> Gaps(int64_t min_ns) const;

  template <class Archive>
  void Transfer(Archive& archive) {
    if constexpr (!Archive::kReads) Keep();
    archive(covered_);
    if constexpr (Archive::kReads) {
      recent_ = extent_ = {};
      for (const auto& [first_ns, last_ns] : covered_) {
        archive.Require(first_ns <= last_ns && IsValid({first_ns, last_ns}));
        extent_.Cover(first_ns, last_ns);
      }
      if (!archive.ok()) *this = {};
    }
  }

 private:
  static constexpr size_t kMaxRanges = 2'048;

  // Moves the recent events to the others.
  void Keep();
  void Insert(const Extent& range);
  int64_t ShortestGap() const {
    return extent_.IsEmpty() ? kMinGapNs : std::max(kMinGapNs, (extent_.last_ns - extent_.first_ns) >> 10);
  }

  // Around events next to each other, as those of a trace mostly are.
  Extent recent_;
  Extent extent_;                       // of covered_
  std::map<int64_t, int64_t> covered_;  // ends of disjoint ranges by their starts
};

// What a trace says of times without any event.
struct UnrecordedTime {
  // Its clock jumped or nothing was recorded, unless the program did nothing at all: longer than a program
  // waits. Left out of spans, idle times and steps. Sorted, disjoint.
  std::vector<TimeRange> left_out;
  // Maybe; counts as idle. Sorted, disjoint.
  std::vector<TimeRange> counted;

  bool empty() const { return left_out.empty() && counted.empty(); }
  static constexpr uint64_t kMaxRanges = 2'048;

  template <class Archive>
  void Transfer(Archive& archive) {
    for (auto* const ranges : {&left_out, &counted}) {
      uint64_t count = ranges->size();
      archive(count);
      archive.Require(count <= kMaxRanges);
      if constexpr (Archive::kReads) ranges->assign(archive.ok() ? count : 0, {});
      for (TimeRange& range : *ranges) {
        archive(range.from_ns);
        archive(range.to_ns);
      }
      int64_t from_ns = std::numeric_limits<int64_t>::min();
      for (const TimeRange& range : *ranges) {
        archive.Require(IsValid(range) && from_ns <= range.from_ns && range.from_ns < range.to_ns);
        from_ns = range.to_ns;
      }
    }
  }
};

UnrecordedTime FindUnrecorded(const RecordedTime& recorded);

// A clock that stands still in some ranges of a trace's.
class ClockWithout {
 public:
  // Sorted and disjoint; must outlive it.
  explicit ClockWithout(std::span<const TimeRange> left_out) : left_out_(left_out) {}

  bool IsTraces() const { return left_out_.empty(); }
  // The time on this clock; of a time in a range that of its start.
  int64_t Without(int64_t trace_ns) const;
  TimeRange Without(const TimeRange& range) const { return {Without(range.from_ns), Without(range.to_ns)}; }
  // The other way round; the end of a range where there are several.
  int64_t StartOf(int64_t ns) const;
  // The other way round; the start of a range where there are several.
  int64_t EndOf(int64_t ns) const;

 private:
  std::span<const TimeRange> left_out_;
};

}  // namespace gpusonde::analyze
