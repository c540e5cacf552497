// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// From where on a rule gives advice. All are chosen, not fitted: what a person would act upon. Shares are of
// a rank's span, from its first GPU event to its last, unless said otherwise.
namespace gpusonde::analyze::thresholds {

// Share in gaps under 1 ms. Where the host keeps up there are hardly any; a tenth is the least for which
// rewriting the launching code is worth it.
inline constexpr double kLaunchGaps = 0.10;

// Share in gaps of 1 ms and more. Lower than above: they are few, and each has one cause that can be found.
inline constexpr double kHostStalls = 0.05;

// Share within waits for the data loader: as for long gaps, of which they are the reason.
inline constexpr double kLoaderBound = 0.05;

// Share in launches that a full queue blocks: as for short gaps, of which they are the opposite.
inline constexpr double kFullQueue = 0.10;
// Share in which a GPU with a full queue may be idle, at most; if it is more, its work waits for something.
inline constexpr double kIdleBehindQueue = 0.20;

// ns. An empty kernel takes 2 to 3 µs on a GPU, and a launch costs the host about as much again: below 10 µs
// much of a kernel's time is overhead.
inline constexpr int64_t kSmallKernel = 10'000;
// Share of all kernel launches: fusing pays where most launches are small.
inline constexpr double kSmallKernels = 0.5;
// Share in back-to-back gaps: less is lost in the variation between runs.
inline constexpr double kBackToBack = 0.03;

// Share in calls of copies that block the host, of the sum of all spans.
inline constexpr double kSynchronousCopies = 0.05;

// Share in calls of sets that block the host.
inline constexpr double kSynchronousSets = 0.05;

// Share in copies from or to pageable memory, of the sum of all spans.
inline constexpr double kPageableCopies = 0.03;
// Copies of pinned memory that there must be for a comparison of rates; as for the effects of copies.
inline constexpr int64_t kPinnedCopies = 30;
// Mean sizes may differ by this factor: below 64 KiB the rate depends on the size most.
inline constexpr double kComparableSizes = 4;

// Share of communication without computation and without waiting for stragglers.
inline constexpr double kExposedCommunication = 0.10;

// Share of copies and sets without a kernel: as for communication, which is remedied likewise.
inline constexpr double kExposedCopies = 0.10;

// Share that last waves lose: the bound is generous, as a last wave's blocks run faster, alone.
inline constexpr double kLastWaves = 0.05;

// Share of the slow time that has a low clock: at least half of what is to be explained.
inline constexpr double kLowClock = 0.5;
// How many times more often the clock is low in slow time than in the rest.
inline constexpr double kLowClockOftener = 2;

// Share that a straggler, a slow rank or slow periods cost. They are significant already (docs/analyze.md);
// less is lost in the variation between runs.
inline constexpr double kSlowness = 0.01;

}  // namespace gpusonde::analyze::thresholds
