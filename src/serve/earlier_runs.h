// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "model/batch.h"
#include "store/live/live_store.h"

namespace gpusonde::serve {

// When the newest run of an agent began that these rows tell of; nothing if they tell of none.
std::optional<int64_t> NewestRun(std::span<const model::Batch> batches);

// Writes the ends of incidents and warnings that began before this time and are open, to the file of the day.
// An agent that ends closes its own, one that is killed leaves them, and no later run of an agent goes on
// with them. They end when the runs before were last seen. Errors: those of Store::Query and Store::Append.
Status EndWhatEarlierRunsLeft(store::LiveStore& store, store::Day day, int64_t started_ns);

}  // namespace gpusonde::serve
