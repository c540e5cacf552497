// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "base/time_range.h"
#include "model/selection.h"
#include "store/rollups/work_summer.h"
#include "store/sql/sql_part.h"

// Sums over packs of kernels (table kernel_packs) without unpacking them in SQL.
namespace gpusonde::store {

// Adds the packed kernels that start in the range, of the selection's process, device and stream, without
// their launches. `tables` is a prefix of table names: "" or a schema and a dot. Errors: those of `ask`.
Status AddPacks(const Ask& ask, const model::Selection& selection, const TimeRange& range,
                const std::string& tables, WorkSummer& summer);

// Where to add the intervals of a process on a device.
using TimesOf = std::function<std::vector<TimeRange>*(const Id128& process, const Id128& device)>;

// Adds the intervals of packed kernels, in graphs or not, within the range.
Status AddPackedTimes(const Ask& ask, const model::Selection& selection, const TimeRange& range,
                      const std::string& tables, const TimesOf& times_of);

}  // namespace gpusonde::store
