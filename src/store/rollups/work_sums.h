// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/selection.h"
#include "model/tables/kernel_windows.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

// GPU work summed by name and, where known, by launching stack: the input of a GPU profile.
namespace gpusonde::store {

// The columns of the statements below.
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

// Whether to fill the column `sketch`.
enum class Sketches { kNo, kYes };

// Sums what the selection's process, device and stream started in the range, with its launches: parts "all",
// "sampled" and "captured", without times of their own. `tables` goes before the names of tables: "" or a
// schema and a dot. Errors: those of `ask`.
//
// Rows of work and launches are joined here: as one statement that also summed what each launch started, a
// profile of 5 million kernels and as many launches took 4.4 s of CPU time and 2.1 GB of memory, now 1.9 s
// and 0.53 GB.
Result<std::vector<model::KernelWindow>> SumWork(const Ask& ask, const model::Selection& selection,
                                                 const TimeRange& range, Sketches sketches = Sketches::kNo,
                                                 const std::string& tables = "");

// A statement for sums from roll-ups of that length that start in the range.
SqlPart SumsOfWindows(const model::Selection& selection, const TimeRange& range, int64_t length_ns);

// The selection's lost records, for which only sums are known: part "lost". Their stream is unknown, so a
// selection of one stream has none.
SqlPart SumsOfLost(const model::Selection& selection, const TimeRange& range);

// Whether a launch may have started work with its correlation id, by their times: ids wrap around.
bool MayHaveStarted(int64_t launch_ns, int64_t work_ns);

// The time range of launches whose work may start in `range`.
TimeRange LaunchReach(const TimeRange& range);

}  // namespace gpusonde::store
