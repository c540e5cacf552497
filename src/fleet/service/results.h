// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/service/board.h"

namespace gpusonde::fleet {

// What the sums of some epochs say, with the noise that is in them.
struct Results {
  // The histogram of one group of characteristics, of the devices that were drawn for it.
  struct Histogram {
    uint32_t group = 0;
    double contributors = 0;   // estimated
    std::vector<double> bins;  // kBins, estimated contributors
  };
  // Devices that ran an application, were idle, or ran something unknown: estimated from those that were
  // drawn to say so, in devices × epochs.
  struct Share {
    std::string name;
    double devices = 0;
    double deviation = 0;               // standard deviation: of the noise, and of the draw
    bool is_shown = false;              // beyond what noise makes (ReleaseThreshold)
    std::vector<Histogram> histograms;  // those that are
  };

  std::string fleet;
  uint32_t period_s = 0;
  std::optional<uint32_t> first_epoch, last_epoch;  // of those that are summed
  size_t epochs = 0;
  uint64_t devices = 0;  // enrolled by the last epoch's end
  uint64_t expelled = 0;
  uint64_t reports = 0;   // accepted
  uint64_t rejected = 0;  // arrived, but were not accepted
  std::array<size_t, kOutcomes> lists{};
  size_t lists_too_small = 0;
  uint64_t min_reports = 0;
  size_t decryptors = 0;
  std::vector<Share> applications;  // most devices first
  Share idle, unknown;
  size_t spreading = 0;  // unknown applications that many devices run (unknown.h)
  Board::State now;
};

// Of the newest `epochs` that were released. Errors: those of ReadRelease.
Result<Results> SumUp(const Board& board, size_t epochs);

// One line; keys are never renamed or removed while `version` stays.
std::string ToJson(const Results& results);
// For people, 80 columns.
std::string ToText(const Results& results);

}  // namespace gpusonde::fleet
