// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/live/live_store.h"

namespace gpusonde::serve {

// Ends open incidents and warnings that began before `started_ns`, when a host's newest run began, and writes
// them to the file of the day. An agent that is stopped ends its own; one that is killed leaves them open,
// and its next run doesn't continue them. They end when the earlier runs were last observed. Errors: those of
// Store::Query and Store::Append.
Status EndWhatEarlierRunsLeft(store::LiveStore& store, store::Day day, int64_t started_ns);

}  // namespace gpusonde::serve
