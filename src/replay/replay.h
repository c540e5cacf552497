// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "base/id128.h"
#include "base/result.h"
#include "diagnose/diagnosis.h"
#include "store/sql/time_range.h"
#include "store/store.h"

// Replays stored rows into a diagnosis: those of a recording, or those of the run before an agent's.
namespace gpusonde::replay {

// The time range of all rows recorded since `since_ns`, ns since the epoch and bounded (store::BoundTime);
// {0, 0} if there are none. Reads two columns of each table and unpacks no kernels. Errors: those of
// Store::Query.
Result<TimeRange> ReadSpan(store::Store& store, int64_t since_ns);

// Whether there are any host signals: traces of other profilers have none, nor recordings made without
// privileges. Errors: those of Store::Query.
Result<bool> HasSignals(store::Store& store);

// Replays the store's rows of `range` and all its programs into `diagnosis`, in the order in which the agent
// would have ingested them. Errors: those of Store::Query.
Status Replay(store::Store& store, const TimeRange& range, diagnose::Diagnosis& diagnosis);

// A finished diagnosis of all that the store has, with these options but for `awaits_signals`. Errors: those
// of Store::Query.
Result<diagnose::Diagnosis> Diagnose(store::Store& store, diagnose::Diagnosis::Options options);

// Replays the rows of `range` that have a time. Their programs must have been ingested. Errors: those of
// Store::Query.
Status ReplayRows(store::Store& store, const TimeRange& range, diagnose::Diagnosis& diagnosis);

// The time until which each program was observed, by the last run that saw it (later runs may not have). A
// killed run ended, at the latest, when the next one on its machine began. GPU work before range.from_ns is
// not looked at. Errors: those of Store::Query.
Result<std::map<Id128, int64_t>> ReadObservedUntil(store::Store& store, const TimeRange& range);

}  // namespace gpusonde::replay
