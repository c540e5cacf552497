// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/selection.h"
#include "store/sql/sql_part.h"
#include "store/store.h"

namespace gpusonde::store {

// Bounds a time from an untrusted recording to the years 1933 to 2116, so that times can be subtracted and
// rounded without overflow.
int64_t BoundTime(int64_t time_ns);

// The time range of each source, by start. A source without an end (it runs, or was killed) lasted until the
// last sample or spool commit before the next source of its host began; where the store has several hosts,
// until its last sample or metric.
Result<std::vector<TimeRange>> ReadObserved(Store& store);

// The same, with sources without an end cut to what their CPU samples cover: samples arrive a second or more
// before their commit, and later than the commit is stamped. The newest sample is the end, if it is at most
// this much older than the last sign of life: on an idle machine there is none.
inline constexpr int64_t kMaxSampleDelayNs = 3'000'000'000;
Result<std::vector<TimeRange>> ReadSampled(Store& store);

// When gpusonde was running, sorted and disjoint; empty for data without sources, such as imported traces. A
// session of the inject library may outlive the run that started it, and nobody watches the device in
// between. The last run, if it has no end, lasted until the newest GPU work where that is later than its last
// sign of life.
Result<std::vector<TimeRange>> ReadRuns(Store& store);
// The same for each host, but the last run ends as in ReadObserved.
Result<std::map<std::string, std::vector<TimeRange>>> ReadRunsByHost(Store& store);

// The selection's time range; open ends are those of the sources, or of the samples if there are no sources.
// Bounded; empty (0, 0) if there is neither.
Result<TimeRange> ReadTimeRange(Store& store, const model::Selection& selection);

// " AND …": rows of `signals` that may touch the range. Those of agents last for a second or two; others come
// from files that anyone may have written, and are left out if they last for more than a minute.
SqlPart AndOfSignals(const TimeRange& range);

// The union of rows of start and end, in ns, that are ordered by their starts. Errors: those of Rows::Next.
Result<std::vector<TimeRange>> ReadUnion(Rows& rows);

}  // namespace gpusonde::store
