// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "exporters/prometheus/live_totals.h"
#include "server/http_server.h"
#include "server/listen_address.h"

namespace gpusonde::server {

// What this process, its ended children included, has used so far.
exporters::prometheus::OwnUse ReadOwnUse();

// GET /metrics in the format that the scraper accepts. `totals` must outlive it.
HttpHandler MetricsHandler(const exporters::prometheus::LiveTotals& totals);

// Answers /healthz from memory; everything else goes to `others`.
HttpHandler AnsweringHealth(HttpHandler others);

// /metrics and /healthz at an address of their own, on a thread of their own: a scraper on another
// machine then can't read stacks and command lines.
class MetricsServer {
 public:
  struct Options {
    ListenAddress listen;
    Guard guard;  // tokens need the scope metrics
  };
  // Errors: those of HttpServer::Create. `totals` must outlive it.
  static Result<std::unique_ptr<MetricsServer>> Start(const exporters::prometheus::LiveTotals& totals,
                                                      const Options& options);

  // "http://127.0.0.1:9400/metrics".
  std::string Url() const;

  ~MetricsServer();

 private:
  explicit MetricsServer(std::unique_ptr<HttpServer> server);

  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

}  // namespace gpusonde::server
