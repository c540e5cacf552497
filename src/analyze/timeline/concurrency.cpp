// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/concurrency.h"

#include <algorithm>

namespace gpusonde::analyze {

size_t StreamTable::FindPlace(uint32_t stream) {
  RecentStream& recent = recent_[stream % recent_.size()];
  const auto [place, is_new] = places_.try_emplace(stream, places_.size());
  recent = {.stream = stream, .known = true, .place = place->second};
  if (!is_new) return recent.place;
  if (recent.place <= kMaxStreams) {
    streams_.push_back({.stream = stream});
    shared_ns_.resize(PairOf(streams_.size(), 0));
  }
  if (recent.place >= kMaxStreams) ends_beyond_ns_.push_back(std::numeric_limits<int64_t>::min());
  return recent.place;
}

void StreamTable::Add(const LaunchedRecord& record, bool alone) {
  const GpuRecord& event = record.gpu;
  const size_t own = PlaceOf(event.stream);
  const size_t place = std::min(own, kMaxStreams);
  StreamTimes& times = streams_[place];
  int64_t ended_ns = times.busy.covered_to();
  bool is_first = times.events == 0;
  if (own >= kMaxStreams) {
    int64_t& own_end_ns = ends_beyond_ns_[own - kMaxStreams];
    ended_ns = own_end_ns;
    is_first = own_end_ns == std::numeric_limits<int64_t>::min();
    own_end_ns = std::max(own_end_ns, event.end_ns);
  }
  if (!is_first && event.start_ns > ended_ns) times.gaps.Add(record, ended_ns);
  ++times.events;
  if (alone) {
    active_[0] = static_cast<uint8_t>(place);
    active_count_ = 1;
  } else {
    AddShared(event.start_ns, event.end_ns, place);
  }
  times.busy.Add(event.start_ns, event.end_ns);
}

void StreamTable::AddShared(int64_t start_ns, int64_t end_ns, size_t place) {
  bool is_active = false;
  for (size_t i = 0; i < active_count_;) {
    const size_t other = active_[i];
    if (other == place) {
      is_active = true;
    } else if (streams_[other].busy.covered_to() <= start_ns) {
      // Until it has another event, no later one runs beside it.
      active_[i] = active_[--active_count_];
      continue;
    } else {
      shared_ns_[PairOf(std::max(place, other), std::min(place, other))] +=
          SharedGrowth(start_ns, end_ns, streams_[place].busy, streams_[other].busy);
    }
    ++i;
  }
  if (!is_active) active_[active_count_++] = static_cast<uint8_t>(place);
}

IdleTime StreamTable::Gaps() const {
  IdleTime sum;
  for (const StreamTimes& times : streams_) sum.Merge(times.gaps);
  return sum;
}

}  // namespace gpusonde::analyze
