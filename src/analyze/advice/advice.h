// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyze/report.h"

namespace gpusonde::analyze {

// What may be done about well-known problems, the largest expected gain first. Reads only the report's other
// lines, so it is the same however the work was divided.
std::vector<AdviceLine> Advise(const Report& report);

}  // namespace gpusonde::analyze
