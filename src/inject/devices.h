// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "inject/sink.h"

namespace gpusonde::inject {

// Tells which device an ordinal means: UUID, name, memory, processors and PCI address, as the driver in this
// process says; what it doesn't say stays empty. Needs an initialised driver, which whoever saw an activity
// on the device has.
void TellDevice(uint32_t ordinal, uint32_t session, Batch& out);

}  // namespace gpusonde::inject
