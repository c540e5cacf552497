// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "store/sql/time_range.h"
#include "store/store.h"

namespace gpusonde::store {

// The process, and those that it started, or that these did, as far as they lived in the range and have used
// no GPU: a program's loaders, but not other ranks of its job. At most a thousand. Errors: those of
// Store::Query.
Result<std::vector<Id128>> ReadOwnProcesses(Store& store, const Id128& process, const TimeRange& range);

}  // namespace gpusonde::store
