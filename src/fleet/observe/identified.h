// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/terminal.h"
#include "fleet/catalog.h"
#include "fleet/observe/observation.h"

// Which applications of a catalog GPUs ran, for people.
namespace gpusonde::fleet {

// The cosine of two fingerprints that have a score, -1 to 1: kUnknownFloor is 0.7.
double CosineOf(int32_t score);

struct Identified {
  struct Candidate {
    uint32_t application = 0;  // in the catalog
    int32_t score = 0;
  };
  std::optional<uint32_t> application;  // in the catalog; nothing if it is unknown
  std::vector<Candidate> nearest;       // at most two, the best first; none without a kernel
};
Identified Identify(const Catalog& catalog, const Fingerprint& fingerprint);

// A table with a line for each GPU, and what the catalog was: `named` completes "catalog: 7 applications".
std::string IdentifiedText(const Catalog& catalog, std::span<const Observation> observations,
                           const std::string& named, const Terminal& terminal);
// docs/fleet/identify.md describes it.
std::string IdentifiedJson(const Catalog& catalog, std::span<const Observation> observations);

}  // namespace gpusonde::fleet
