// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/profile.h"

namespace gpusonde::server {

// The variance in ns² of each node's total in a call tree of GPU time. Under a node lie launches of many
// kernels; of each, those below the node are a part of the whole (model/launch_shares.h), and what different
// kernels contribute is independent. `parents`: by node, smaller than the node, -1 at the root. `ends`: the
// node at the end of each of the profile's samples, or -1.
//
// Time: the frames of all samples.
std::vector<double> TotalVariances(const model::Profile& profile, std::span<const int32_t> parents,
                                   std::span<const int32_t> ends);

}  // namespace gpusonde::server
