// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "diagnose/diagnosis.h"
#include "store/store.h"
#include "store/time_range.h"

namespace gpusonde::app {

// When anything was recorded from then on, ns since the epoch; both 0 if nothing was.
Result<store::TimeRange> ReadSpan(store::Store& store, int64_t since_ns);

// Tells what a store has of that time, in the order in which the agent would have seen it, and of all
// programs. Errors: those of Store::Query.
Status Replay(store::Store& store, const store::TimeRange& range, diagnose::Diagnosis& diagnosis);

// Tells an always-on agent's new diagnosis what the run before saw last, so that its incidents go on and have
// something to be compared with. Programs that have ended since end with that run, and those incidents that
// are not among what was told are closed in the store. Errors: those of Store::Query and Store::Append.
Status Recall(store::Store& store, int64_t now_ns, diagnose::Diagnosis& diagnosis);

}  // namespace gpusonde::app
