// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "inject/sink.h"

namespace gpusonde::inject {

// Finds the driver's functions for SendDevice; further calls have no effect. Takes the loader's lock, which a
// program holds while it runs constructors: not to be called while one could wait for our thread.
void FindDriver();

// Sends the properties of the device with this ordinal: UUID, name, memory, multiprocessors and PCI address,
// as the driver in this process reports them; what it doesn't report stays empty. The driver must be
// initialised, which it is once there was activity on the device. Doesn't wait for the loader.
void SendDevice(uint32_t ordinal, uint32_t session, Batch& out);

}  // namespace gpusonde::inject
