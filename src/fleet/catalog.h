// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleet/fingerprint.h"

namespace gpusonde::fleet {

// The applications that are known, by their fingerprints.
struct Catalog {
  struct Application {
    std::string name;
    Fingerprint fingerprint{};
  };
  std::vector<Application> applications;
};

// A score below this is nobody's. Of 15 models' streams (bench/fleet_identification.cpp) halves of a run and
// other runs of one model have a cosine of 0.74 at least, two models 0.64 at most.
inline constexpr int32_t kUnknownFloor = kFingerprintLength * kFingerprintLength * 7 / 10;

// The application with the highest score, the first of equals; nothing below the floor. `scores` in the order
// of a catalog, below 2^20 in size. Looks at every score, without a branch that depends on one: both ways of
// identification, in the open and under encryption, end here and so agree.
std::optional<size_t> BestMatch(std::span<const int32_t> scores);

// In the open: all scores of a fingerprint.
std::vector<int32_t> Scores(const Catalog& catalog, const Fingerprint& fingerprint);

}  // namespace gpusonde::fleet
