// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fleet/fingerprint.h"

namespace gpusonde::fleet {

// The known applications with their fingerprints.
struct Catalog {
  struct Application {
    std::string name;
    Fingerprint fingerprint{};
  };
  std::vector<Application> applications;
};

// Below this score an application is unknown. Of the streams of 15 models (bench/fleet_identification.cpp),
// halves of a run and other runs of a model have a cosine of at least 0.74, different models at most 0.64.
inline constexpr int32_t kUnknownFloor = kFingerprintLength * kFingerprintLength * 7 / 10;

struct Match {
  bool is_known = false;
  uint32_t application = 0;  // in the catalog, if it is known

  bool operator==(const Match&) const = default;
};

// The application with the highest score, the first of equals; not known below the floor. `scores` are in the
// catalog's order, with absolute values below 2^20. Reads every score, without a branch that depends on one,
// which tests/programs/constant_time.cpp checks. Public and private mode both end here, so they agree.
Match BestMatch(std::span<const int32_t> scores);

// Public mode: all scores of a fingerprint.
std::vector<int32_t> Scores(const Catalog& catalog, const Fingerprint& fingerprint);

}  // namespace gpusonde::fleet
