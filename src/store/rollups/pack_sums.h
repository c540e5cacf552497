// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "model/selection.h"
#include "model/tables/kernel_windows.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/sql_part.h"
#include "store/store.h"

// Sums over packs of kernels (table kernel_packs), computed here rather than in SQL: the statements that sum
// single rows (store/rollups/work_sums.h) would unpack them, join them with all launches and group them,
// which takes 0.55 s of CPU time for a minute of 10,000 kernels a second, here 0.06 s (bench/gpu_bench.cpp,
// StoreAMinute).
namespace gpusonde::store {

struct PackSumOptions {
  bool launches = false;  // with the parts "sampled"
  bool sketches = false;  // with the column `sketch`
};

// Sums of the packed kernels outside graphs that start in the range, of the selection's process, device and
// stream: rows like those of SumsOfWork, without times of their own. `tables` is a prefix of table names: ""
// or a schema and a dot.
Result<std::vector<model::KernelWindow>> SumPacks(const Ask& ask, const model::Selection& selection,
                                                  const TimeRange& range, PackSumOptions options,
                                                  const std::string& tables = "");

// Where to add the intervals of a process on a device.
using TimesOf = std::function<std::vector<TimeRange>*(const Id128& process, const Id128& device)>;

// Adds the intervals of packed kernels, in graphs or not, within the range.
Status AddPackedTimes(const Ask& ask, const model::Selection& selection, const TimeRange& range,
                      const std::string& tables, const TimesOf& times_of);

}  // namespace gpusonde::store
