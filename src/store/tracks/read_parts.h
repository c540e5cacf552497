// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "base/time_range.h"
#include "model/selection.h"
#include "store/sql/sql_part.h"
#include "store/store.h"
#include "store/tracks/track_builder.h"

// The parts of ReadTracks. Each adds what runs in the builder's range; errors are those of Store::Query.
namespace gpusonde::store {

Status ReadGpuTracks(Store& store, const model::Selection& selection, TrackBuilder& builder);
Status ReadSteps(Store& store, const model::Selection& selection, TrackBuilder& builder);
Status ReadStates(Store& store, const model::Selection& selection, TrackBuilder& builder);
// `data_end_ns` is the end of ranges without one.
Status ReadRanges(Store& store, const model::Selection& selection, int64_t data_end_ns,
                  TrackBuilder& builder);
Status ReadCalls(Store& store, const model::Selection& selection, TrackBuilder& builder);
// The last one: without `helper_threads` it removes the tracks of profilers' threads
// (model/helper_threads.h).
Status ReadSamples(Store& store, const model::Selection& selection, bool helper_threads,
                   TrackBuilder& builder);

// The rows of threads in a range, as what follows FROM: rows of start_ns and count.
SqlPart CountedThreadRows(const model::Selection& selection, const TimeRange& range);

}  // namespace gpusonde::store
