// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time_range.h"
#include "model/batch.h"
#include "store/queries/usage_query.h"
#include "store/store.h"
#include "usage/usage.h"

namespace gpusonde::usage {

// From which time on rows change the usage: kAllOfIt if perhaps all of it, kNoneOfIt for rows that it isn't
// read from.
inline constexpr int64_t kAllOfIt = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kNoneOfIt = std::numeric_limits<int64_t>::max();
int64_t ChangedFrom(std::span<const model::Batch> batches);

// The GPU time of one store by holder and hour of UTC, in memory: usage of whole hours follows from it
// without reading the store again. Update reads only what has changed. Sums are those of ReadUsage over the
// same time; intervals of estimates may be wider, because their blocks are whole hours. Not thread-safe.
class UsageHours {
 public:
  static constexpr int64_t kMaxHours = int64_t{24} * 31;

  // Beyond `max_bytes` Update forgets the oldest hours.
  explicit UsageHours(size_t max_bytes) : max_bytes_(max_bytes) {}
  void SetMaxBytes(size_t max_bytes) { max_bytes_ = max_bytes; }

  // Reads the store anew from `changed_from_ns` on (ChangedFrom of all rows that came since the last call),
  // and what came after that call. Errors: those of Store::Query; nothing has changed then.
  Status Update(store::Store& store, int64_t changed_from_ns);

  // The time that is summed: from the begin of an hour to the last sign of life. Empty without data.
  const TimeRange& covered() const { return covered_; }
  // Whether the store has earlier hours, which are forgotten.
  bool is_cut() const { return is_cut_; }

  // Of the hours that begin in the range, which ends no later than now.
  Usage Sum(const TimeRange& range, const SumBy& by) const;

  size_t bytes() const { return bytes_; }

 private:
  struct Holder {
    store::HolderFacts facts;  // its name is the application, its command is forgotten
    std::array<std::string, std::size(kByNames)> names;
    std::map<std::string, std::string> labels;
  };
  using HolderKey = std::pair<Id128, Id128>;  // process and device

  static HolderKey KeyOf(const store::HolderFacts& facts) { return {facts.process, facts.device}; }
  bool Agrees(const store::GpuUsageHours& read) const;
  Status Replace(store::Store& store, store::GpuUsageHours read);
  void ForgetBefore(int64_t time_ns);
  void ForgetUnheld();
  void CountBytes();

  size_t max_bytes_;
  TimeRange covered_;
  bool is_cut_ = false;
  size_t bytes_ = 0;
  store::Sightings seen_;
  std::vector<store::GpuDevice> devices_;
  std::set<std::string> labels_;
  std::vector<Holder> holders_;
  std::vector<store::HolderHour> hours_;  // by start
};

}  // namespace gpusonde::usage
