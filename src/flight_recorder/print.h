// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "flight_recorder/dump.h"
#include "flight_recorder/hang.h"

namespace gpusonde::flight_recorder {

// Formats who keeps whom waiting, in sentences, with the place in the program that each call was made from.
std::string FormatText(std::span<const Dump> dumps, const Hang& hang);

// Formats the same as JSON (docs/flight-recorder.md).
std::string FormatJson(std::span<const Dump> dumps, const Hang& hang);

}  // namespace gpusonde::flight_recorder
