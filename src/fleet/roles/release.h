// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "fleet/privacy/decryptor.h"
#include "fleet/sampling.h"

// Processing of unmasked sums: the balance check, histograms, and suspected devices.
namespace gpusonde::fleet {

// Standard deviation of the noise in a slot of a sum with this many answers.
double NoiseDeviation(uint64_t sigma, uint64_t answers);

// Whether a sum can be one of honest reports: each slot is from 0 to 255 per report, within 7 standard
// deviations of noise, as there are thousands; each report has a weight of 255, and in each row the bins
// weigh as much as the contributors, within 6; at the place of signatures all slots together weigh 255 per
// report. kCorrupt with the difference: the whole cohort is refused. Smaller changes by a cheat pass
// (docs/fleet/privacy.md).
Status CheckBalance(const privacy::NoisySum& sum, uint64_t sigma, bool signatures);

// Histograms of released sums over windows and cohorts: they add up, and so does their noise. Not
// thread-safe.
class Histograms {
 public:
  explicit Histograms(const Layout& layout);

  void Add(uint32_t place, const privacy::NoisySum& sum);

  std::span<const double> slots(uint32_t place) const { return pages_[place].slots; }
  // The number of noise draws in each slot of the page: cohorts × decryptors.
  uint64_t answers(uint32_t place) const { return pages_[place].answers; }
  // Estimated contributors of a row: its contributor slot / 255.
  double Contributors(uint32_t place, uint32_t row) const;

 private:
  struct Page {
    std::vector<double> slots;
    uint64_t answers = 0;
  };
  std::vector<Page> pages_;
};

// The number of contributors from which a row is shown: 20 plus 2.33 standard deviations of the noise, so
// that one in a hundred rows without contributors exceeds the latter. This is for readability: privacy comes
// from the noise.
double ReleaseThreshold(uint64_t sigma, uint64_t answers);

// Finds devices that corrupt cohorts. Cohorts are drawn anew in each window, so that a cheat's are always
// refused and others' hardly ever (group testing). A device whose last windows were all refused is suspected
// once the expected number of such honest devices in the whole fleet is below 1/100. Cheats that pause are
// not found. Not thread-safe.
class Suspects {
 public:
  struct Cohort {
    const privacy::ReportList* list;
    bool refused;
  };
  // Processes a window. Returns the newly suspected devices, and forgets them.
  std::vector<uint64_t> Judge(std::span<const Cohort> window);

 private:
  std::unordered_map<uint64_t, double> log_luck_;  // of devices whose last windows were all refused
};

}  // namespace gpusonde::fleet
