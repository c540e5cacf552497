// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpusonde::symbols {

// In a server, the end of the socket that it was started with.
inline constexpr int kServerFd = 3;

// Starts a process of our own that serves us on `socket`, and returns its pid: `command` is its program and
// arguments.
Result<int32_t> StartServer(const std::vector<std::string>& command, int socket);

}  // namespace gpusonde::symbols
