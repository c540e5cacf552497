// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "fleet/catalog.h"

namespace gpusonde::fleet {

// Bounds on a catalog of a file: seventeen pages of a report.
inline constexpr size_t kMaxApplications = 1037;
inline constexpr size_t kMaxApplicationName = 200;

// A catalog as JSON: {"version": 1, "applications": [{"name": …, "fingerprint": [256 whole numbers]}, …]}, in
// the catalog's order, which reports refer to.
std::string ToJson(const Catalog& catalog);

// Errors: kInvalidArgument, naming the application, for anything else: other keys, no or too many
// applications, names that are empty, too long or given twice, and fingerprints that are longer than
// kFingerprintLength allows, whose scores could overflow. kTooNew for another version.
Result<Catalog> ParseCatalog(std::string_view json);

}  // namespace gpusonde::fleet
