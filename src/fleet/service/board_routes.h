// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "fleet/service/board.h"
#include "server/http_server.h"

namespace gpusonde::fleet {

// The aggregator over HTTP (docs/fleet/services.md has the protocol): what BoardClient has, and the results.
// `board` must outlive the routes. `now_ms` is Unix time in ms.
server::HttpRoutes BoardRoutes(Board& board, const std::function<int64_t()>& now_ms);

}  // namespace gpusonde::fleet
