// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace gpusonde::fleet {

using Beacon = std::array<uint8_t, 32>;

// The places of a fleet's reports in an epoch: a histogram page for each group of characteristics and page of
// the catalog, and one more page for the signatures of unknown applications (unknown.h).
struct Layout {
  uint32_t groups = 1;
  uint32_t pages = 1;
  uint32_t cohorts = 1;

  uint32_t places() const { return groups * pages + 1; }
  uint32_t signatures_place() const { return groups * pages; }
};

// A device's group of characteristics, page of the catalog and cohort in an epoch. Public: anybody can
// compute it, so the place of a report reveals nothing, and no device can choose it.
struct Assignment {
  uint32_t place = 0;  // of the layout; which group and page follows
  uint32_t group = 0;  // of characteristics; 0 at the place of signatures
  uint32_t page = 0;
  uint32_t cohort = 0;

  bool operator==(const Assignment&) const = default;
};

// H(device, epoch, beacon), uniform over places and cohorts: BLAKE2b keyed with the beacon, which the
// decryptors draw after enrolment has closed (docs/fleet/privacy.md). Everything in the layout > 0.
Assignment AssignmentOf(uint64_t device, uint32_t epoch, const Beacon& beacon, const Layout& layout);

}  // namespace gpusonde::fleet
