// SPDX-License-Identifier: Apache-2.0
#include "server/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/testing/http_client.h"
#include "server/testing/tokens_file.h"

namespace gpusonde::server {
namespace {

using testing::HasSubstr;

uint16_t PortOf(const MetricsServer& server) {
  const std::string url = server.Url();
  return static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
}

TEST(MetricsServer, ItServesMetricsToWhoHasTheTokenAndItsHealthToEveryone) {
  const exporters::prometheus::LiveTotals totals;
  const TokensFile tokens({{"scraper", Scope::kMetrics}});
  const auto server = MetricsServer::Start(totals, {.listen = {}, .guard = {.access = tokens.Open()}});
  ASSERT_TRUE(server.has_value()) << server.error().message;
  HttpClient client(PortOf(**server));
  const HttpAnswer refused = client.Get("/metrics");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.Header("WWW-Authenticate"), "Bearer");
  const std::string header = "Authorization: Bearer " + TokensFile::Of("scraper") + "\r\n";
  const HttpAnswer metrics = client.Get("/metrics", header);
  EXPECT_EQ(metrics.status, 200);
  EXPECT_EQ(metrics.Header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(metrics.body, HasSubstr("\nprocess_resident_memory_bytes "));
  const HttpAnswer open = client.Get("/metrics", header + "Accept: application/openmetrics-text\r\n");
  EXPECT_THAT(open.Header("Content-Type"), HasSubstr("application/openmetrics-text"));
  EXPECT_TRUE(open.body.ends_with("# EOF\n"));
  EXPECT_EQ(client.Get("/healthz").body, "ok\n");
  for (const char* other : {"/", "/api/v1/overview", "/readyz"})
    EXPECT_EQ(client.Get(other, header).status, 404) << other;
}

}  // namespace
}  // namespace gpusonde::server
