// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpusonde::analyze {

// Whether a call of the CUDA or HIP runtime or driver returns once a copy has ended (their references, "API
// synchronization behavior"). Copies within a device are not among them.
bool IsBlockingCopy(std::string_view name);

// Whether a call does nothing but wait for work of the GPU: its name ends in "Synchronize".
bool IsWaitCall(std::string_view name);

// Whether a call waits for work of the GPU: those that do nothing else, and blocking copies.
bool IsSyncCall(std::string_view name);

}  // namespace gpusonde::analyze
