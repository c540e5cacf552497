// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/records.h"
#include "analyze/timeline/coverage.h"
#include "analyze/timeline/idle_time.h"
#include "base/saturated.h"

namespace gpusonde::analyze {

// For how long at least so many events run at the same time on a device. Add events by start.
class Concurrency {
 public:
  static constexpr size_t kLevels = 4;

  void Add(int64_t start_ns, int64_t end_ns) {
    work_ns_ = AddSaturated(work_ns_, end_ns - start_ns);
    if (start_ns >= latest_ends_ns_[0]) {
      at_least_ns_[0] += end_ns - start_ns;
      latest_ends_ns_[0] = end_ns;
      return;
    }
    // The number of events that run at a time from this start on is that of later ends. So at least k run
    // until the k-th latest end, and this event moves that.
    int64_t moving_ns = end_ns;
    for (size_t level = 0; level < kLevels && moving_ns > start_ns; ++level) {
      int64_t& latest_ns = latest_ends_ns_[level];
      if (moving_ns <= latest_ns) continue;
      at_least_ns_[level] += moving_ns - (latest_ns > start_ns ? latest_ns : start_ns);
      std::swap(moving_ns, latest_ns);
    }
  }

  // Of all events; saturates.
  int64_t work_ns() const { return work_ns_; }
  // For how long at least 1, 2, 3 and 4 events run.
  const std::array<int64_t, kLevels>& at_least_ns() const { return at_least_ns_; }

  // Without what is only needed to add events.
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(work_ns_);
    int64_t longer_ns = std::numeric_limits<int64_t>::max();
    for (int64_t& ns : at_least_ns_) {
      archive(ns);
      archive.Require(ns >= 0 && ns <= longer_ns, "concurrency.running_ns");
      longer_ns = ns;
    }
    archive.Require(work_ns_ >= at_least_ns_[0], "concurrency.mean");
  }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  int64_t work_ns_ = 0;
  std::array<int64_t, kLevels> at_least_ns_ = {};
  std::array<int64_t, kLevels> latest_ends_ns_ = {kNone, kNone, kNone, kNone};  // latest first
};

// What a stream did by itself.
struct StreamTimes {
  uint32_t stream = 0;
  int64_t events = 0;
  Coverage busy;
  IdleTime gaps;  // between the latest end on it and its next start

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(stream);
    archive(events);
    archive(busy);
    archive(gaps);
    archive.Require(events > 0 && busy.length_ns() >= 0, "concurrency.streams");
  }
};

// The streams of a device, and for how long each two of them have work at the same time. Streams after the
// first kMaxStreams, by their first event, are together one more, at kMaxStreams; its gaps are the sum of
// those of each of its streams. Add events by start.
class StreamTable {
 public:
  // Programs rarely have more than PyTorch's 32 streams of a pool; a device runs 128 kernels at a time at
  // most. The pairs of so many take 16 kB.
  static constexpr size_t kMaxStreams = 64;

  // `alone`: no earlier event goes on at its start.
  void Add(const LaunchedRecord& record, bool alone);

  const std::vector<StreamTimes>& streams() const { return streams_; }
  // For how long both of two places in streams() have work; the larger place first.
  int64_t SharedNs(size_t later, size_t earlier) const { return shared_ns_[PairOf(later, earlier)]; }
  // Of each stream alone, summed.
  IdleTime Gaps() const;

  // Without what is only needed to add events.
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(streams_);
    archive(shared_ns_);
    archive.Require(streams_.size() <= kMaxStreams + 1 && shared_ns_.size() == PairOf(streams_.size(), 0),
                    "concurrency.streams");
    for (const int64_t ns : shared_ns_) archive.Require(ns >= 0, "concurrency.pairs.shared_ns");
  }

 private:
  struct RecentStream {
    uint32_t stream = 0;
    bool known = false;
    size_t place = 0;
  };

  size_t PlaceOf(uint32_t stream) {
    const RecentStream& recent = recent_[stream % recent_.size()];
    return recent.known && recent.stream == stream ? recent.place : FindPlace(stream);
  }
  size_t FindPlace(uint32_t stream);
  void AddShared(int64_t start_ns, int64_t end_ns, size_t place);

  std::vector<StreamTimes> streams_;
  std::vector<int64_t> shared_ns_;
  // Where a stream's times are, counted on beyond kMaxStreams; a few streams alternate.
  std::unordered_map<uint32_t, size_t> places_;
  std::array<RecentStream, 16> recent_;
  std::vector<int64_t> ends_beyond_ns_;  // the latest ends of streams beyond kMaxStreams
  // Places of streams whose work may go on, each once, if that of any does.
  std::array<uint8_t, kMaxStreams + 1> active_ = {};
  size_t active_count_ = 0;
};

}  // namespace gpusonde::analyze
