// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "analyze/findings/collective_match.h"
#include "analyze/findings/job.h"

namespace gpusonde::analyze {

// How fast process groups moved messages, by operation and power of two of the size, as far as the traces
// have sizes; those that took most time first, at most kMaxBandwidthLines.
//
// Sizes and bandwidths are those of nccl-tests (doc/PERFORMANCE.md and the *GetBw functions of its programs):
// the size is all that a rank puts in or gets out, whichever is more; the algorithm's bandwidth is size by
// time; the bus's is that times 2 (n − 1) / n for all-reduces, (n − 1) / n for all-gathers, reduce-scatters,
// all-to-alls, gathers and scatters, and 1 for others, of n ranks, so that it compares with a link's.
//
// Where every rank gets something from every other, all leave together, so the time from when the last rank
// came is the shortest that any rank spent. That needs all ranks of the group. Otherwise, and of other
// operations, in which a rank may leave before others, each rank's own time counts, and line.skew_removed is
// false. `matched`: MatchCollectives of the job. Pure.
std::vector<BandwidthLine> MeasureBandwidth(const Job& job, std::span<const MatchedCollectives> matched);

inline constexpr size_t kMaxBandwidthLines = 100;

}  // namespace gpusonde::analyze
