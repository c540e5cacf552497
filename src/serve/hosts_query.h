// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "serve/hosts.h"
#include "server/http_message.h"

namespace gpusonde::serve {

// GET /api/v1/query: one read-only SQL statement over several hosts, each by itself (docs/api.md). One at a
// time, so that pages are answered meanwhile. Only for tokens of scope admin: DuckDB stops a statement
// between chunks of rows, but not a function over one huge list, whose memory it doesn't count either
// (`list_sort(range(500000000))` took 17 GB). Thread-safe.
class HostsQuery {
 public:
  // `hosts` must outlive it.
  explicit HostsQuery(Hosts& hosts) : hosts_(hosts) {}

  server::HttpResponse Answer(const server::HttpRequest& request);

 private:
  Hosts& hosts_;
  std::mutex running_;
};

}  // namespace gpusonde::serve
