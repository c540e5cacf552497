// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/profile.h"

namespace gpusonde::server {

// The variance in ns² of each node's total in a call tree of GPU time or of waits. `parents`: by node,
// smaller than the node, -1 at the root. `ends`: the node at the end of each of the profile's samples, or -1.
//
// GPU time: under a node lie launches of many kernels; of each, those below the node are a part of the whole
// (model/launch_shares.h), and what different kernels contribute is independent. Time: the frames of all
// samples. Waits: each was sampled independently, so that their variances add up. Time: samples and nodes.
std::vector<double> TotalVariances(const model::Profile& profile, std::span<const int32_t> parents,
                                   std::span<const int32_t> ends);

}  // namespace gpusonde::server
