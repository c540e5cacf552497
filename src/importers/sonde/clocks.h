// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "importers/clocks.h"

namespace gpusonde::importers::sonde {

// A recording's gpu.clock.sm and gpu.throttle.reasons. Errors: those of opening a recording.
Result<Clocks> ReadRecordedClocks(const std::string& path);

}  // namespace gpusonde::importers::sonde
