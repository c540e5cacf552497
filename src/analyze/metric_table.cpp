// SPDX-License-Identifier: Apache-2.0
#include "analyze/metric_table.h"

#include <algorithm>
#include <utility>

namespace gpusonde::analyze {

uint64_t MetricTable::HashOf(uint32_t name, const NameTable& names) {
  if (name >= hashes_.size()) hashes_.resize(names.size());
  if (hashes_[name] == 0) hashes_[name] = NameTable::HashOf(names[name]);
  return hashes_[name];
}

void MetricTable::Add(const importers::MeasuredLaunch& launch, std::span<const importers::MetricValue> values,
                      uint16_t rank, const NameTable& names, const RankTable& ranks) {
  const RankKey& key = ranks.ranks()[rank];
  const uint64_t where = MixBits(static_cast<uint64_t>(key.process) ^
                                 MixBits(static_cast<uint64_t>(key.device) << 32 | launch.shape));
  const uint64_t kernel = MixBits(HashOf(launch.name, names) ^ where);
  for (const importers::MetricValue& value : values) {
    const uint64_t metric = MixBits(HashOf(value.metric, names)) + HashOf(value.unit, names);
    bool is_new = false;
    MetricSums& sums = table_.At(MixBits(kernel ^ metric), is_new);
    if (is_new) {
      sums.name = launch.name;
      sums.metric = value.metric;
      sums.unit = value.unit;
      sums.shape = launch.shape;
      sums.rank = rank;
    }
    sums.values.Add(value.value);
    sums.sketch.Add(value.value);
    if (launch.duration_ns.has_value()) sums.with_duration.Add(value.value, *launch.duration_ns);
  }
}

void MetricTable::Merge(const MetricTable& other, std::span<const uint32_t> names,
                        std::span<const uint16_t> ranks) {
  for (const auto& [hash, sums] : other.table_.entries()) {
    bool is_new = false;
    MetricSums& mine = table_.At(hash, is_new);
    if (is_new) {
      mine.name = names[sums.name];
      mine.metric = names[sums.metric];
      mine.unit = names[sums.unit];
      mine.shape = sums.shape;
      mine.rank = ranks[sums.rank];
    }
    mine.Merge(sums);
  }
  table_.other().Merge(other.table_.other());
}

MetricTable::Kept MetricTable::Finish() const {
  BoundedTable<MetricSums> table = table_;
  table.Finish();
  Kept kept{.sums = {}, .values_beyond = table.other().values.count()};
  for (auto& [hash, sums] : table.entries()) kept.sums.push_back(std::move(sums));
  return kept;
}

bool MetricTable::HasOnlyKnown(size_t names, size_t ranks) const {
  return std::ranges::all_of(table_.entries(), [=](const auto& entry) {
    const MetricSums& sums = entry.second;
    return sums.name < names && sums.metric < names && sums.unit < names && sums.rank < ranks;
  });
}

}  // namespace gpusonde::analyze
