// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "model/launch_thread_part.h"
#include "model/selection.h"
#include "store/store.h"

namespace gpusonde::store {

// What launch threads did while GPUs were idle, by ranges, operators and calls, longest first. Traces have no
// CPU samples, but all of these.
//
// The time is that of the gaps in the selection's work on each device; each gap belongs to the thread that
// launched the work after it. Gaps before work whose call is unknown don't count, nor does time before the
// first work. Empty if calls were sampled, as in recordings of `record`; nullopt if there is too much to read
// (kMaxIdleRows). Errors: those of Store::Query.
Result<std::optional<std::vector<model::LaunchThreadPart>>> ReadLaunchThreadsWhileIdle(
    Store& store, const model::Selection& selection);

// Work, calls and ranges, together.
inline constexpr int64_t kMaxIdleRows = 3'000'000;

}  // namespace gpusonde::store
