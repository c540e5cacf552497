// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/name_table.h"
#include "analyze/rank_table.h"
#include "analyze/stats/bounded_table.h"
#include "analyze/stats/pair_moments.h"
#include "importers/event.h"
#include "model/moments.h"
#include "model/sketch.h"

namespace gpusonde::analyze {

// A metric of the launches of one kernel with one launch shape on one rank.
struct MetricSums {
  uint32_t name = 0;  // these are numbers of a NameTable…
  uint32_t metric = 0;
  uint32_t unit = 0;
  uint32_t shape = 0;
  uint16_t rank = 0;  // … and this of a RankTable
  model::Moments values;
  model::Sketch sketch;
  PairMoments with_duration;  // values and ns, of launches whose duration is known

  void Merge(const MetricSums& other) {
    values.Merge(other.values);
    sketch.Merge(other.sketch);
    with_duration.Merge(other.with_duration);
  }
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(name);
    archive(metric);
    archive(unit);
    archive(shape);
    archive(rank);
    archive(values);
    archive(sketch);
    archive(with_duration);
  }
};

// The metrics of measured launches. Memory: at most 65,536 sums, about 60 MiB; beyond that, 32,768 are kept,
// chosen by a rule that doesn't depend on the order of launches (BoundedTable). Names and ranks are numbered
// as in the state that contains it.
class MetricTable {
 public:
  MetricTable() : table_(kMaxSums) {}

  void Add(const importers::MeasuredLaunch& launch, std::span<const importers::MetricValue> values,
           uint16_t rank, const NameTable& names, const RankTable& ranks);
  // Adds another table, whose names and ranks have the given numbers here.
  void Merge(const MetricTable& other, std::span<const uint32_t> names, std::span<const uint16_t> ranks);

  struct Kept {
    std::vector<MetricSums> sums;  // in an order that depends on their names, shapes and ranks only
    int64_t values_beyond = 0;     // values without a sum, because there are too many kinds
  };
  Kept Finish() const;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(table_);
  }
  // Whether all numbers are valid for tables of these sizes.
  bool HasOnlyKnown(size_t names, size_t ranks) const;

 private:
  static constexpr size_t kMaxSums = 32'768;

  uint64_t HashOf(uint32_t name, const NameTable& names);

  BoundedTable<MetricSums> table_;
  std::vector<uint64_t> hashes_;  // of names; 0: not computed yet
};

}  // namespace gpusonde::analyze
