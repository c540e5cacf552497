// SPDX-License-Identifier: Apache-2.0
#include "analyze/recorded_time.h"

#include <iterator>
#include <utility>

namespace gpusonde::analyze {

void RecordedTime::Keep() {
  if (!recent_.IsEmpty()) Insert(std::exchange(recent_, {}));
}

void RecordedTime::Insert(const Extent& range) {
  extent_.Cover(range);
  Extent joined = range;
  auto next = covered_.upper_bound(joined.first_ns);
  if (next != covered_.begin() && std::prev(next)->second > joined.first_ns - ShortestGap()) --next;
  while (next != covered_.end() && next->first < joined.last_ns + ShortestGap()) {
    joined.Cover(next->first, next->second);
    next = covered_.erase(next);
  }
  covered_.emplace_hint(next, joined.first_ns, joined.last_ns);
  if (covered_.size() < kMaxRanges) return;
  // Joins those that were far enough apart while the trace was known to be shorter.
  for (auto last = covered_.begin(), one = std::next(last); one != covered_.end();) {
    if (one->first >= last->second + ShortestGap()) {
      last = one++;
      continue;
    }
    last->second = std::max(last->second, one->second);
    one = covered_.erase(one);
  }
}

void RecordedTime::Merge(const RecordedTime& other) {
  Keep();
  for (const auto& [first_ns, last_ns] : other.covered_) Insert({first_ns, last_ns});
  if (!other.recent_.IsEmpty()) Insert(other.recent_);
}

Extent RecordedTime::extent() const {
  Extent all = extent_;
  all.Cover(recent_);
  return all;
}

std::vector<TimeRange> RecordedTime::Gaps(int64_t min_ns) const {
  RecordedTime all = *this;
  all.Keep();
  const int64_t shortest_ns = std::max(min_ns, all.ShortestGap());
  std::vector<TimeRange> gaps;
  const int64_t* end_ns = nullptr;
  for (const auto& [first_ns, last_ns] : all.covered_) {
    if (end_ns != nullptr && first_ns - *end_ns >= shortest_ns) gaps.push_back({*end_ns, first_ns});
    end_ns = &last_ns;
  }
  return gaps;
}

UnrecordedTime FindUnrecorded(const RecordedTime& recorded) {
  // Programs wait for minutes without an event of a profiler that only traces CUDA: to load data, or a model.
  // What is left out is longer, ten times the rest of the trace, and not a habit of the program.
  constexpr int64_t kMinLeftOutNs = 600'000'000'000;
  constexpr int64_t kTimesTheRest = 10;
  constexpr size_t kMaxLeftOut = 8;
  // Worth a note: most of the trace, and more than a pause between two steps.
  constexpr int64_t kMinCountedNs = 10'000'000'000;
  UnrecordedTime found;
  const Extent extent = recorded.extent();
  if (extent.IsEmpty()) return found;
  found.left_out = recorded.Gaps(kMinLeftOutNs);
  const int64_t rest_ns = extent.last_ns - extent.first_ns - LengthOf(found.left_out);
  std::erase_if(found.left_out,
                [&](const TimeRange& gap) { return LengthOf(gap) / kTimesTheRest < rest_ns; });
  if (found.left_out.size() > kMaxLeftOut) found.left_out.clear();
  found.counted = Subtract(recorded.Gaps(kMinCountedNs), found.left_out);
  const int64_t counted_ns = extent.last_ns - extent.first_ns - LengthOf(found.left_out);
  if (LengthOf(found.counted) < counted_ns / 2) found.counted.clear();
  return found;
}

int64_t ClockWithout::Without(int64_t trace_ns) const {
  int64_t before_ns = 0;
  for (const TimeRange& range : left_out_) {
    if (trace_ns <= range.from_ns) break;
    before_ns += std::min(trace_ns, range.to_ns) - range.from_ns;
  }
  return trace_ns - before_ns;
}

int64_t ClockWithout::StartOf(int64_t ns) const {
  for (const TimeRange& range : left_out_)
    if (ns >= range.from_ns) ns += LengthOf(range);
  return ns;
}

int64_t ClockWithout::EndOf(int64_t ns) const {
  for (const TimeRange& range : left_out_)
    if (ns > range.from_ns) ns += LengthOf(range);
  return ns;
}

}  // namespace gpusonde::analyze
