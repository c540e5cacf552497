// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "diagnose/diagnosis.h"
#include "model/tables/processes.h"
#include "store/store.h"

namespace gpusonde::replay {

// Replays the last minutes of the previous run into an agent's new diagnosis, so that open incidents continue
// under their ids and baselines exist, whether that run was stopped or killed.
//
// `lives` answers whether a program without a recorded exit still runs. One that doesn't ended when it was
// last observed. Open warnings, and open incidents that the replay ended or did not reproduce, are closed in
// the store: nothing would ever end them. `now_ns` is the epoch time at which the new run begins. Errors:
// those of Store::Query and Store::Append.
Status Recall(store::Store& store, int64_t now_ns, const std::function<bool(const model::Process&)>& lives,
              diagnose::Diagnosis& diagnosis);

}  // namespace gpusonde::replay
