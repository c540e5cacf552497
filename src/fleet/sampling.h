// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace gpusonde::fleet {

// What a device measures in one epoch, and for which page of the catalog. Public: anybody can compute it, so
// that a device's report tells nothing by its place, and no device can choose.
struct Assignment {
  uint32_t group = 0;  // of characteristics
  uint32_t page = 0;

  bool operator==(const Assignment&) const = default;
};

// H(device, epoch, beacon), uniform over groups × pages: BLAKE2b keyed with the beacon, which the decryptors
// draw after enrolment has closed (DESIGN section 10). groups, pages > 0.
Assignment AssignmentOf(uint64_t device, uint32_t epoch, std::span<const uint8_t, 32> beacon, uint32_t groups,
                        uint32_t pages);

}  // namespace gpusonde::fleet
