// SPDX-License-Identifier: Apache-2.0
#include "fleet/simulator/simulator.h"

namespace gpusonde::fleet {

std::string ToHtml(const Simulated&) { return {}; }

}  // namespace gpusonde::fleet
