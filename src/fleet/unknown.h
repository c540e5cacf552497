// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "fleet/fingerprint.h"
#include "fleet/privacy/masks.h"

// Applications that the catalog doesn't know and that spread: devices at the place of signatures report a
// bucket of their unknown's fingerprint, not a histogram, and buckets that many devices share show above the
// noise.
namespace gpusonde::fleet {

inline constexpr int kSignatureBits = 12;
static_assert(size_t{1} << kSignatureBits == privacy::kReportSlots);

// On which sides of 12 fixed random hyperplanes a fingerprint lies: fingerprints at an angle θ differ in each
// bit with probability θ/π, so that runs of one application mostly fall into one bucket or its neighbours.
// Source: Charikar, "Similarity estimation techniques from rounding algorithms" (2002). 1 to 4095: bucket 0
// is for devices that have no unknown, and what would fall into it counts as 1.
uint32_t SignatureOf(const Fingerprint& fingerprint);

// A bucket that more devices share than noise explains.
struct Spreading {
  uint32_t bucket = 0;
  double devices = 0;  // estimated

  bool operator==(const Spreading&) const = default;
};

// The buckets that hold more than `threshold` devices and no fewer than each of their neighbours (one bit
// off), largest first. `slots` are the sums of reports, noise included.
std::vector<Spreading> FindSpreading(const std::vector<double>& slots, double threshold);

}  // namespace gpusonde::fleet
