// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "mcp/server.h"

namespace gpusonde::mcp {

// Serves one client: a message per line of `in`, a response per line of `out`, until `in` ends and all calls
// are answered. Calls run one after another on a thread of their own, at most kMaxQueuedCalls waiting, so
// that pings and cancellations are handled meanwhile. Errors: kIo.
Status ServeStdio(Server& server, int in, int out);

inline constexpr size_t kMaxQueuedCalls = 32;

}  // namespace gpusonde::mcp
