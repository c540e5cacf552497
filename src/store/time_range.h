// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/selection.h"
#include "store/store.h"

namespace gpusonde::store {

// When each source was gathering, by start. One that has no end (it runs, or was killed) is taken to have
// gathered until the last sample or commit of a spool before the next source of its host began.
Result<std::vector<TimeRange>> ReadObserved(Store& store);

// The selection's time, its open ends replaced by those of the sources, or of the samples where there are no
// sources; empty (0, 0) where there is neither.
Result<TimeRange> ReadTimeRange(Store& store, const model::Selection& selection);

}  // namespace gpusonde::store
