// SPDX-License-Identifier: Apache-2.0
#include "base/time_range.h"

#include <algorithm>
#include <cstddef>

#include "base/int128.h"

namespace gpusonde {
namespace {

// Extends `last` by a range that starts no earlier, if they touch; returns whether they do.
bool Join(const TimeRange& next, TimeRange& last) {
  if (next.from_ns > last.to_ns) return false;
  last.to_ns = std::max(last.to_ns, next.to_ns);
  return true;
}

}  // namespace

int64_t LengthOf(std::span<const TimeRange> ranges) {
  int64_t sum_ns = 0;
  for (const TimeRange& range : ranges) sum_ns += LengthOf(range);
  return sum_ns;
}

double LengthNs(const TimeRange& range) {
  return static_cast<double>(Int128{range.to_ns} - Int128{range.from_ns});
}

double LengthNs(std::span<const TimeRange> ranges) {
  Int128 sum_ns = 0;
  for (const TimeRange& range : ranges) sum_ns += Int128{range.to_ns} - Int128{range.from_ns};
  return static_cast<double>(sum_ns);
}

void AppendToUnion(const TimeRange& next, std::vector<TimeRange>& joined) {
  if (joined.empty() || !Join(next, joined.back())) joined.push_back(next);
}

std::vector<TimeRange> UnionOf(std::vector<TimeRange> sorted) {
  size_t count = 0;
  for (const TimeRange& range : sorted)
    if (count == 0 || !Join(range, sorted[count - 1])) sorted[count++] = range;
  sorted.resize(count);
  return sorted;
}

std::vector<TimeRange> UnionOf(std::span<const TimeRange> sorted, const TimeRange& within) {
  std::vector<TimeRange> joined;
  for (const TimeRange& range : sorted) {
    if (range.from_ns >= within.to_ns) break;
    const TimeRange clipped{std::max(range.from_ns, within.from_ns), std::min(range.to_ns, within.to_ns)};
    if (clipped.from_ns < clipped.to_ns) AppendToUnion(clipped, joined);
  }
  return joined;
}

std::vector<TimeRange> Intersect(std::span<const TimeRange> a, std::span<const TimeRange> b) {
  std::vector<TimeRange> both;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const TimeRange common{std::max(a[i].from_ns, b[j].from_ns), std::min(a[i].to_ns, b[j].to_ns)};
    if (common.from_ns < common.to_ns) both.push_back(common);
    a[i].to_ns < b[j].to_ns ? ++i : ++j;
  }
  return both;
}

std::vector<TimeRange> Subtract(std::span<const TimeRange> a, std::span<const TimeRange> b) {
  std::vector<TimeRange> rest;
  size_t j = 0;
  for (TimeRange range : a) {
    while (j < b.size() && b[j].to_ns <= range.from_ns) ++j;
    for (size_t k = j; k < b.size() && b[k].from_ns < range.to_ns; ++k) {
      if (b[k].from_ns > range.from_ns) rest.push_back({range.from_ns, b[k].from_ns});
      range.from_ns = std::max(range.from_ns, b[k].to_ns);
    }
    if (range.from_ns < range.to_ns) rest.push_back(range);
  }
  return rest;
}

}  // namespace gpusonde
