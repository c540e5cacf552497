// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace simgpu {

// Settings from environment variables (listed in simgpu/README.md). An invalid value counts as not set.
const char* TextSetting(const char* name, const char* otherwise);
int64_t IntegerSetting(const char* name, int64_t otherwise, int64_t lowest, int64_t highest);
double NumberSetting(const char* name, double otherwise, double lowest, double highest);

}  // namespace simgpu
