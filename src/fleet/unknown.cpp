// SPDX-License-Identifier: Apache-2.0
#include "fleet/unknown.h"

#include <algorithm>
#include <array>

#include "base/id128.h"

namespace gpusonde::fleet {
namespace {

using Planes = std::array<std::array<int8_t, kFeatures>, kSignatureBits>;

// Normals of random signs, the same everywhere.
const Planes& Hyperplanes() {
  static const Planes planes = [] {
    Planes made{};
    for (size_t plane = 0; plane < made.size(); ++plane)
      for (size_t i = 0; i < kFeatures; ++i)
        made[plane][i] = (IdHasher("fleet signature").Add(plane).Add(i).Finish().low & 1) != 0 ? 1 : -1;
    return made;
  }();
  return planes;
}

}  // namespace

uint32_t SignatureOf(const Fingerprint& fingerprint) {
  uint32_t bucket = 0;
  for (const auto& plane : Hyperplanes()) {
    int32_t side = 0;
    for (size_t i = 0; i < kFeatures; ++i) side += int32_t{plane[i]} * fingerprint[i];
    bucket = (bucket << 1) | (static_cast<uint32_t>(~side) >> 31);
  }
  return std::max(bucket, 1u);
}

std::vector<Spreading> FindSpreading(const std::vector<double>& slots, double threshold) {
  std::vector<Spreading> found;
  for (uint32_t bucket = 1; bucket < slots.size(); ++bucket) {
    const double devices = slots[bucket] / privacy::kReportWeight;
    if (devices <= threshold) continue;
    bool is_peak = true;
    for (int bit = 0; bit < kSignatureBits; ++bit) {
      const uint32_t neighbour = bucket ^ (1u << bit);
      if (neighbour != 0 && slots[neighbour] > slots[bucket]) is_peak = false;
    }
    if (is_peak) found.push_back({bucket, devices});
  }
  std::ranges::stable_sort(found, std::greater(), &Spreading::devices);
  return found;
}

}  // namespace gpusonde::fleet
