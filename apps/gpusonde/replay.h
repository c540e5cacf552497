// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "diagnose/diagnosis.h"
#include "store/store.h"
#include "store/time_range.h"

namespace gpusonde::app {

// The time range of all rows recorded since `since_ns`, ns since the epoch; {0, 0} if there are none.
Result<store::TimeRange> ReadSpan(store::Store& store, int64_t since_ns);

// Replays the store's rows of `range` and all its programs into `diagnosis`, in the order in which the agent
// would have ingested them. Errors: those of Store::Query.
Status Replay(store::Store& store, const store::TimeRange& range, diagnose::Diagnosis& diagnosis);

// Replays the last minutes of the previous run into an agent's new diagnosis, so that open incidents continue
// and baselines exist. Programs that have exited since end with that run; open incidents that the replay did
// not reproduce are closed in the store. Errors: those of Store::Query and Store::Append.
Status Recall(store::Store& store, int64_t now_ns, diagnose::Diagnosis& diagnosis);

}  // namespace gpusonde::app
