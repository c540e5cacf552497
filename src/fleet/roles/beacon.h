// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "fleet/sampling.h"

// The randomness that assigns places to devices: nobody can choose it if one decryptor draws its part
// honestly. Each publishes a commitment to its part after enrolment has closed, and the part itself after all
// commitments.
namespace gpusonde::fleet {

using BeaconPart = std::array<uint8_t, 32>;
using Commitment = std::array<uint8_t, 32>;

// BLAKE2b-256 of the epoch and the part.
Commitment Commit(uint32_t epoch, const BeaconPart& part);

// kInvalidArgument if a part doesn't match its commitment or is missing; the message says whose.
Result<Beacon> Reveal(uint32_t epoch, std::span<const Commitment> commitments,
                      std::span<const BeaconPart> parts);

}  // namespace gpusonde::fleet
