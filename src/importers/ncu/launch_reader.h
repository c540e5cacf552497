// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "importers/event.h"
#include "importers/ncu/csv.h"
#include "importers/ncu/number.h"
#include "importers/ncu/units.h"
#include "importers/trace.h"

namespace gpusonde::importers::ncu {

// Turns rows into launches with metrics, for one thread. A shard's text is the row of columns, in the wide
// form the row of units, and then rows; its `source` is the DecimalMark.
class LaunchReader final : public ShardReader {
 public:
  explicit LaunchReader(EventSink& sink) : sink_(sink) {}

  Status Read(const Shard& shard) override;

 private:
  // A column or row name with its unit, as numbered by the sink.
  struct Metric {
    uint32_t name = 0;
    uint32_t unit = 0;
    Unit scale;
    bool is_duration = false;
  };

  using Cells = std::vector<std::string_view>;

  void ReadLong(const Cells& cells);
  void ReadWide(const Cells& cells);
  void Begin(const Cells& cells);
  void AddValue(const Metric& metric, std::string_view text);
  void End();
  const Metric& MetricOf(std::string_view name, std::string_view unit);
  std::string_view At(const Cells& cells, size_t column) const;

  EventSink& sink_;
  RowParser parser_;
  Columns columns_;
  DecimalMark mark_ = DecimalMark::kPoint;
  std::unordered_map<std::string, Metric> metrics_;  // by name and unit
  std::vector<const Metric*> wide_;                  // as columns_.metrics
  bool open_ = false;                                // a launch is being read
  std::string launch_;                               // which
  MeasuredLaunch current_;
  std::vector<MetricValue> values_;
  int64_t texts_ = 0;
};

}  // namespace gpusonde::importers::ncu
