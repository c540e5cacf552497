// SPDX-License-Identifier: Apache-2.0
#include "fleet/sampling.h"

#include <vector>

#include "base/int128.h"
#include "base/little_endian.h"
#include "fleet/privacy/random.h"

namespace gpusonde::fleet {

Assignment AssignmentOf(uint64_t device, uint32_t epoch, const Beacon& beacon, const Layout& layout) {
  std::vector<uint8_t> data;
  AppendLittleEndian(data, device);
  AppendLittleEndian(data, epoch);
  const auto digest = privacy::Derive(beacon, "gpusonde sampling", data);
  // Uniform up to places/2^64 and cohorts/2^64.
  const auto draw = [&](size_t from, uint32_t bound) {
    const auto number = ReadLittleEndian<uint64_t>(digest.values().subspan(from));
    return static_cast<uint32_t>((Uint128{number} * bound) >> 64);
  };
  Assignment assignment{.place = draw(0, layout.places()), .cohort = draw(8, layout.cohorts)};
  if (assignment.place != layout.signatures_place()) {
    assignment.group = assignment.place % layout.groups;
    assignment.page = assignment.place / layout.groups;
  }
  return assignment;
}

}  // namespace gpusonde::fleet
