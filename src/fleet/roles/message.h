// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fleet/histogram.h"
#include "fleet/sampling.h"

namespace gpusonde::fleet {

inline constexpr uint32_t kApplicationsPerPage = 61;
// The rows after those of applications.
inline constexpr uint32_t kIdleRow = 61;
inline constexpr uint32_t kUnknownRow = 62;
inline constexpr uint32_t kElsewhereRow = 63;

// A device's own finding in an epoch: secret.
struct Finding {
  bool is_busy = false;
  bool is_known = false;
  uint32_t application = 0;  // in the catalog, if it is known
  uint32_t signature = 0;    // of an unknown application, else 0 (unknown.h)
};

// The 4,096 slots that a device reports for its place: zero except for the row of the finding, or at the
// place of signatures for the bucket of its unknown application. No branch or address depends on the finding
// or the row, which tests/programs/constant_time.cpp checks.
std::vector<uint32_t> MessageOf(const Finding& finding, const Assignment& assignment, const Layout& layout,
                                const Row& row);

}  // namespace gpusonde::fleet
