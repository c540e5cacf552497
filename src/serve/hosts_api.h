// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "serve/hosts.h"
#include "serve/ingest.h"
#include "server/http_message.h"

namespace gpusonde::serve {

// The API of the pages (docs/api.md) over all hosts: the parameter `host` selects one, and may be left out
// while there is only one; /api/v1/hosts lists them. `metrics` answers /metrics; null: a 404. `hosts` and
// `counts` must outlive the handler.
server::HttpHandler HostsApi(Hosts& hosts, const IngestCounts& counts, server::HttpHandler metrics = {});

}  // namespace gpusonde::serve
