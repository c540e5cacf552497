// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "simgpu/timeline/device.h"

namespace simgpu {

// The model called `name` ("h100", "a100", "t4"; h100 for any other) as the `ordinal`-th device of a machine.
// Name and UUID show that it is simulated: the UUID begins with the ASCII letters of "simulated".
DeviceModel ModelNamed(std::string_view name, uint32_t ordinal);

}  // namespace simgpu
