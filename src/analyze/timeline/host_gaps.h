// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "analyze/records.h"

namespace gpusonde::analyze {

// A time without work on a device.
struct Gap {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;

  // Longest first, equal ones in order of time.
  auto Key() const { return std::tuple(begin_ns - end_ns, begin_ns); }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(begin_ns);
    archive(end_ns);
  }
};

// An operator of an eager framework costs the host some 10 to 100 µs. A gap of a millisecond holds ten of
// them without one launch: the host did something else.
inline constexpr int64_t kLongGapNs = 1'000'000;

// Whether the device was idle before this event because the host had launched nothing.
inline bool IsHostGap(const LaunchedRecord& record, int64_t work_ended_ns) {
  return record.has_call != 0 && record.gpu.start_ns > work_ended_ns && record.call_start_ns > work_ended_ns;
}

// The idle time of a device because the host had launched nothing (IdleTime::host_ns), by the length of the
// gaps.
struct HostGaps {
  static constexpr size_t kLongest = 8;

  int64_t short_ns = 0;  // under kLongGapNs
  int64_t short_count = 0;
  int64_t long_ns = 0;
  int64_t long_count = 0;
  std::vector<Gap> longest;  // of the long ones, at most kLongest

  // An event, by start time, and when all work before it had ended.
  void Add(const LaunchedRecord& record, int64_t work_ended_ns) {
    const Gap gap{.begin_ns = work_ended_ns, .end_ns = record.gpu.start_ns};
    if (!IsHostGap(record, work_ended_ns)) return;
    const int64_t length_ns = gap.end_ns - gap.begin_ns;
    if (length_ns < kLongGapNs) {
      short_ns += length_ns;
      ++short_count;
      return;
    }
    long_ns += length_ns;
    ++long_count;
    if (longest.size() == kLongest) {
      if (longest.front().Key() < gap.Key()) return;
      std::ranges::pop_heap(longest, {}, &Gap::Key);
      longest.pop_back();
    }
    longest.push_back(gap);
    std::ranges::push_heap(longest, {}, &Gap::Key);
  }
  void Finish() { std::ranges::sort(longest, {}, &Gap::Key); }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(short_ns);
    archive(short_count);
    archive(long_ns);
    archive(long_count);
    archive(longest);
    for (const Gap& gap : longest) archive.Require(gap.begin_ns < gap.end_ns);
  }
};

}  // namespace gpusonde::analyze
