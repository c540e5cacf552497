// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpusonde::symbols {

// The descriptor of the socket in a server process.
inline constexpr int kServerFd = 3;

// Starts a server process that answers on `socket`, and returns its pid. It inherits that and the standard
// descriptors alone. `command` is its program and arguments. Errors: kUnavailable for an empty command;
// kNotFound, kPermissionDenied, kIo if it can't be started.
Result<int32_t> StartServer(const std::vector<std::string>& command, int socket);

}  // namespace gpusonde::symbols
