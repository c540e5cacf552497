// SPDX-License-Identifier: Apache-2.0
#include "simgpu/timeline/sm_schedule.h"

#include <algorithm>

namespace simgpu {

void SmSchedule::Clear(int64_t now_ns) {
  first_ = 0;
  count_ = 1;
  segments_[0] = {.start_ns = now_ns, .sms = 0, .owner = 0, .kernels = 0, .padding = 0};
}

// The segment that contains time_ns; the first one for earlier times.
uint32_t SmSchedule::IndexAt(int64_t time_ns) const {
  const Segment* begin = &segments_[first_];
  const Segment* after = std::upper_bound(begin, begin + count_, time_ns,
                                          [](int64_t time, const Segment& s) { return time < s.start_ns; });
  return after == begin ? first_ : first_ + static_cast<uint32_t>(after - begin) - 1;
}

bool SmSchedule::Fits(const Segment& segment, int32_t sms, int32_t total_sms, uint32_t owner) const {
  return segment.sms == 0 || (segment.owner == owner && segment.sms + sms <= total_sms);
}

// Makes time_ns a boundary inside the segment at `index`.
void SmSchedule::SplitAt(uint32_t index, int64_t time_ns) {
  std::copy_backward(&segments_[index], &segments_[end()], &segments_[end()] + 1);
  ++count_;
  segments_[index + 1].start_ns = time_ns;
}

std::optional<int64_t> SmSchedule::Place(int64_t ready_ns, int64_t duration_ns, int32_t sms,
                                         int32_t total_sms, uint32_t owner) {
  if (count_ + 2 > kCapacity) return std::nullopt;
  if (end() + 2 > kSlots) {
    std::copy(&segments_[first_], &segments_[end()], segments_.data());
    first_ = 0;
  }
  int64_t start_ns = std::max(ready_ns, segments_[first_].start_ns);
  uint32_t from = IndexAt(start_ns);
  for (uint32_t i = from; i < end() && segments_[i].start_ns < start_ns + duration_ns; ++i) {
    if (Fits(segments_[i], sms, total_sms, owner)) continue;
    start_ns = segments_[i + 1].start_ns;  // there is one: the last segment is empty, so it fits
    from = i + 1;
  }
  if (segments_[from].start_ns < start_ns) SplitAt(from++, start_ns);
  const uint32_t last = IndexAt(start_ns + duration_ns);
  if (segments_[last].start_ns < start_ns + duration_ns) SplitAt(last, start_ns + duration_ns);
  for (uint32_t i = from; segments_[i].start_ns < start_ns + duration_ns; ++i) {
    segments_[i].sms += sms;
    segments_[i].owner = owner;
    ++segments_[i].kernels;
  }
  return start_ns;
}

void SmSchedule::Cancel(uint32_t owner) {
  uint32_t kept = first_;
  for (uint32_t i = first_; i < end(); ++i) {
    Segment segment = segments_[i];
    if (segment.owner == owner) segment = {segment.start_ns, 0, 0, 0, 0};
    // Merge adjacent empty segments.
    if (kept > first_ && segment.sms == 0 && segments_[kept - 1].sms == 0) continue;
    segments_[kept++] = segment;
  }
  count_ = kept - first_;
}

std::optional<int64_t> SmSchedule::NextEnd() const {
  for (uint32_t i = first_; i + 1 < end(); ++i)
    if (segments_[i].sms > 0) return segments_[i + 1].start_ns;
  return std::nullopt;
}

bool SmSchedule::Valid(int32_t total_sms) const {
  if (count_ < 1 || count_ > kCapacity || first_ > kSlots - count_ || segments_[end() - 1].sms != 0)
    return false;
  for (uint32_t i = first_; i < end(); ++i) {
    const Segment& segment = segments_[i];
    if (segment.sms < 0 || segment.sms > total_sms || (segment.sms > 0) != (segment.owner > 0)) return false;
    if (i > first_ && segment.start_ns <= segments_[i - 1].start_ns) return false;
  }
  return true;
}

}  // namespace simgpu
