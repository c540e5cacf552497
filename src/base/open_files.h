// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpusonde {

// Lets this process open as many files as the system allows it (setrlimit(2): raises the soft limit to the
// hard one). Returns how many; unchanged where that fails. Programs that use select(2) with more than 1,024
// files must not be started by it.
int64_t RaiseOpenFiles();

}  // namespace gpusonde
