// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "inject/sink.h"

namespace gpusonde::inject {

// Sends the properties of the device with this ordinal: UUID, name, memory, multiprocessors and PCI address,
// as the driver in this process reports them; what it doesn't report stays empty. The driver must be
// initialised, which it is once there was activity on the device.
void SendDevice(uint32_t ordinal, uint32_t session, Batch& out);

}  // namespace gpusonde::inject
