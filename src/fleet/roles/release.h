// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "fleet/sampling.h"
#include "privacy/decryptor.h"

// What becomes of sums whose masks are off: a check that nobody spoilt them, the histograms, and who is
// suspected.
namespace gpusonde::fleet {

// Standard deviation of the noise in one slot of a sum with so many answers.
double NoiseDeviation(uint64_t sigma, uint64_t answers);

// Whether a sum can be one of honest reports: each weighs 255, and in each row the bins weigh what the
// contributors do, but for 6 standard deviations of noise; at the place of signatures all slots together
// weigh 255 a report. kCorrupt with what is off: the cohort is refused whole. What a cheat adds within that
// passes (docs/privacy.md).
Status CheckBalance(const privacy::NoisySum& sum, uint64_t sigma, bool signatures);

// Histograms of released sums over windows and cohorts: they add up, and so does their noise. Not
// thread-safe.
class Histograms {
 public:
  explicit Histograms(const Layout& layout);

  void Add(uint32_t place, const privacy::NoisySum& sum);

  std::span<const double> slots(uint32_t place) const { return pages_[place].slots; }
  // How many draws of noise each slot of the page holds: cohorts × decryptors.
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

// From how many contributors on a row is shown: 20, and 2.33 standard deviations of the noise, so that one of
// a hundred rows without contributors would be shown 20 too high. For tidiness: the privacy is in the noise.
double ReleaseThreshold(uint64_t sigma, uint64_t answers);

// Who spoils cohorts. Cohorts are drawn anew in each window, so that those of a cheat are refused always and
// those of anybody else hardly ever (group testing). A device that was in a refused cohort in each of its
// last windows is suspected once the expected number of honest devices with such luck, in the whole fleet, is
// below 1/100. Cheats that pause stay unfound. Not thread-safe.
class Suspects {
 public:
  struct Cohort {
    const privacy::ReportList* list;
    bool refused;
  };
  // One window. Returns the devices that are suspected now; they are forgotten.
  std::vector<uint64_t> Judge(std::span<const Cohort> window);

 private:
  std::unordered_map<uint64_t, double> log_luck_;  // of devices whose last windows were all refused
};

}  // namespace gpusonde::fleet
