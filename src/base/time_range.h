// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gpusonde {

// A half-open range of time, ns.
struct TimeRange {
  int64_t from_ns = 0;
  int64_t to_ns = 0;
};

constexpr int64_t LengthOf(const TimeRange& range) { return range.to_ns - range.from_ns; }

// The sum of the lengths.
int64_t LengthOf(std::span<const TimeRange> ranges);

// The same, for what is divided or averaged; of any two times, as a damaged file may hold them.
double LengthNs(const TimeRange& range);
double LengthNs(std::span<const TimeRange> ranges);

// Adds a range that starts no earlier than the last one to a union: sorted, disjoint ranges; ranges that
// touch are joined.
void AppendToUnion(const TimeRange& next, std::vector<TimeRange>& joined);

// The union of ranges sorted by their starts, in their own memory.
std::vector<TimeRange> UnionOf(std::vector<TimeRange> sorted);

// The same of what lies within a range.
std::vector<TimeRange> UnionOf(std::span<const TimeRange> sorted, const TimeRange& within);

// What two sorted lists of disjoint ranges have in common.
std::vector<TimeRange> Intersect(std::span<const TimeRange> a, std::span<const TimeRange> b);

// What lies in `a` and not in `b`; both are sorted lists of disjoint ranges.
std::vector<TimeRange> Subtract(std::span<const TimeRange> a, std::span<const TimeRange> b);

}  // namespace gpusonde
