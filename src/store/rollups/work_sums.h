// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "model/selection.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

// GPU work summed by name and, where known, by launching stack: the input of a GPU profile.
namespace gpusonde::store {

// The columns of the statements below, named and meant as those of table kernel_windows.
enum WorkSumColumn : size_t {
  kPartColumn,
  kProcessColumn,
  kDeviceColumn,
  kNameColumn,
  kGraphColumn,
  kCountColumn,
  kDurationColumn,
  kStackColumn,
  kTidColumn,
  kStreamColumn,
  kWeightColumn,
  kTimeColumn,
  kVarianceColumn,
};

// Whether to fill the column `sketch`, which doubles the time.
enum class Sketches { kNo, kYes };

// A statement that sums what the selection's process, device and stream started in the range, from single
// rows of work and packs of graphs (SumPacks has the other packs): parts "all", "sampled" and "captured"; and
// a last column `sketch`. `tables` goes before the names of tables: "" or a schema and a dot.
SqlPart SumsOfWork(const model::Selection& selection, const TimeRange& range,
                   Sketches sketches = Sketches::kNo, const std::string& tables = "");

// The same from roll-ups of that length that start in the range.
SqlPart SumsOfWindows(const model::Selection& selection, const TimeRange& range, int64_t length_ns);

// The selection's lost records, for which only sums are known: part "lost". Their stream is unknown, so a
// selection of one stream has none.
SqlPart SumsOfLost(const model::Selection& selection, const TimeRange& range);

// Whether a launch may have started work with its correlation id, by their times: ids wrap around.
bool MayHaveStarted(int64_t launch_ns, int64_t work_ns);

// The time range of launches whose work may start in `range`.
TimeRange LaunchReach(const TimeRange& range);

}  // namespace gpusonde::store
