// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/result.h"
#include "exporters/gpu_account.h"
#include "model/selection.h"
#include "server/api.h"

namespace gpusonde::server {

// Reads the input of the account of GPU time; nothing if no GPU did anything in the selection. `sampled`:
// whether CPUs were sampled.
Result<std::optional<exporters::GpuFacts>> ReadGpuFacts(ApiData& data, const model::Selection& selection,
                                                        bool sampled);

}  // namespace gpusonde::server
