// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "model/selection.h"
#include "store/selection_sql.h"
#include "store/time_range.h"

// GPU work summed by name, and by who launched it as far as that is known: what a GPU profile is made from.
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

// Whether the column `sketch` is filled, which takes about as long again.
enum class Sketches { kNo, kYes };

// A statement that sums what the selection's process, device and stream started in the range, from single
// rows of work and packs of graphs (SumPacks has the other packs): parts "all", "sampled" and "captured"; and
// a last column `sketch`. `tables` goes before the names of tables: "" or a schema and a dot.
SqlPart SumsOfWork(const model::Selection& selection, const TimeRange& range,
                   Sketches sketches = Sketches::kNo, const std::string& tables = "");

// The same from windows of that length that start in the range.
SqlPart SumsOfWindows(const model::Selection& selection, const TimeRange& range, int64_t length_ns);

// Records of the selection that were lost, of which only sums are known: part "lost". Of their stream nothing
// is known, so a selection of one has none.
SqlPart SumsOfLost(const model::Selection& selection, const TimeRange& range);

// Whether times allow that a launch started work of its correlation id: ids come again.
bool MayHaveStarted(int64_t launch_ns, int64_t work_ns);

// The time in which a launch may lie whose work starts in the range.
TimeRange LaunchReach(const TimeRange& range);

}  // namespace gpusonde::store
