// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/time.h"
#include "serve/hosts.h"
#include "serve/refusals.h"
#include "server/http_server.h"

namespace gpusonde::serve {

// What an agents' address has received since the start.
struct IngestCounts {
  std::atomic<int64_t> requests = 0;     // answered with 200
  std::atomic<int64_t> frames = 0;       // in those
  std::atomic<int64_t> bytes = 0;        // of those, as sent
  std::atomic<int64_t> refused = 0;      // malformed or hostile
  std::atomic<int64_t> turned_away = 0;  // full, clocks apart, or the host's name is in use: sent again later
  Refusals refusals;                     // of both kinds, of agents whose host is known
};

// The routes of the address for agents: POST /api/v1/frames, /healthz and /readyz (docs/serve.md has the
// protocol). Frames are durable in their host's store before the response. `hosts` and `counts` must outlive
// the routes. `epoch_now` is the clock that days are compared with.
server::HttpRoutes IngestRoutes(Hosts& hosts, IngestCounts& counts,
                                std::function<int64_t()> epoch_now = EpochNow);

}  // namespace gpusonde::serve
