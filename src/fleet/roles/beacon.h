// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "fleet/sampling.h"

// The randomness by which devices get their places: nobody can choose it while one decryptor draws its part
// honestly. Each tells a commitment to its part once enrolment has closed, and the part itself when all
// commitments are there.
namespace gpusonde::fleet {

using BeaconPart = std::array<uint8_t, 32>;
using Commitment = std::array<uint8_t, 32>;

// BLAKE2b-256 of the epoch and the part.
Commitment Commit(uint32_t epoch, const BeaconPart& part);

// kInvalidArgument when a part isn't what was committed to, or one is missing; the message says whose.
Result<Beacon> Reveal(uint32_t epoch, std::span<const Commitment> commitments,
                      std::span<const BeaconPart> parts);

}  // namespace gpusonde::fleet
