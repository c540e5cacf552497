// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "store/rollups/rollup.h"
#include "store/rollups/windows.h"
#include "store/store.h"

// Roll-ups of samples (table profile_windows).
namespace gpusonde::store {

// The variance of a sample's weight_ns, as an estimate of the time that threads waited: a wait that was
// sampled with probability p = duration / weight contributes (1 - p) / p² · duration² (Horvitz and Thompson
// 1952). Double: a file may hold any numbers.
inline constexpr std::string_view kSampleVariance =
    "coalesce(weight_ns::DOUBLE * greatest(weight_ns::DOUBLE - duration_ns::DOUBLE, 0), 0)";

inline constexpr WindowLevel kFiveMinutes{300 * kNanosPerSecond, false};
inline constexpr WindowLevel kHour{3'600 * kNanosPerSecond, true};
inline constexpr WindowLevel kDay{kNanosPerDay, true};

// PiecesOf with the levels of samples; `summed` is that of Store::sample_windows().
std::vector<TimePiece> PiecesOfSamples(const TimeRange& range, const TimeRange& summed, bool by_stack);

// Late samples are summed at once, however late they are.
std::unique_ptr<const RollupTables> SampleRollup();

}  // namespace gpusonde::store
