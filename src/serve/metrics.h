// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>

#include "serve/hosts.h"
#include "serve/ingest.h"
#include "server/access.h"
#include "server/http_message.h"
#include "server/http_server.h"
#include "server/tls.h"

namespace gpusonde::serve {

// How long the API's answers took, by path. Paths that are none of the API's are summed in the last, `other`.
// Thread-safe.
class QueryTimes {
 public:
  struct Path {
    std::string_view path;
    std::atomic<int64_t> answers = 0;
    std::atomic<int64_t> ns = 0;
    std::atomic<int64_t> slow = 0;  // more than a second
  };

  QueryTimes();

  void Add(std::string_view path, int64_t ns);
  const std::deque<Path>& paths() const { return paths_; }

 private:
  std::deque<Path> paths_;  // which need not be movable
};

// What a server reports about itself; whatever it refers to must outlive it.
struct ServeMetrics {
  const Hosts& hosts;
  const IngestCounts& ingest;
  const QueryTimes& queries;
  const server::HttpCounts& agents;  // of the agents' address
  const server::HttpCounts& pages;   // of the pages'
  const server::Tls* tls;            // null: none
  const server::Access* access;
};

inline constexpr size_t kMaxHostSeries = 256;

// GET /metrics in the format that the scraper accepts. Of hosts, the first kMaxHostSeries by name have
// series.
server::HttpHandler MetricsHandler(const ServeMetrics& metrics);

// Counts the times of the handler's answers. `times` must outlive it.
server::HttpHandler Timing(server::HttpHandler handler, QueryTimes& times);

}  // namespace gpusonde::serve
