// SPDX-License-Identifier: Apache-2.0
#include "server/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "server/testing/http_client.h"

namespace gpusonde::server {
namespace {

using testing::HasSubstr;

constexpr const char* kToken = "0123456789abcdef0123";

std::string FileWith(const std::string& name, const std::string& text) {
  std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

uint16_t PortOf(const MetricsServer& server) {
  const std::string url = server.Url();
  return static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
}

TEST(MetricsServer, BeyondLoopbackItNeedsAToken) {
  const auto refused = MetricsServer::Parse("0.0.0.0:0", "");
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("--metrics-token-file"));
  EXPECT_TRUE(MetricsServer::Parse("127.0.0.1:0", "").has_value());
  const auto with_token = MetricsServer::Parse("0.0.0.0:0", FileWith("token", std::string(kToken) + "\n"));
  ASSERT_TRUE(with_token.has_value()) << with_token.error().message;
  EXPECT_EQ(with_token->token, kToken);
}

TEST(MetricsServer, AWeakOrOddTokenIsRefused) {
  for (const char* token : {"", "short", "with a space 0123456789", "two\nlines-0123456789"})
    EXPECT_FALSE(MetricsServer::Parse("127.0.0.1:0", FileWith("bad_token", token)).has_value()) << token;
  EXPECT_FALSE(MetricsServer::Parse("127.0.0.1:0", "/nowhere/token").has_value());
}

TEST(MetricsServer, ItServesMetricsToWhoHasTheTokenAndItsHealthToEveryone) {
  const exporters::prometheus::LiveTotals totals;
  const auto server = MetricsServer::Start(totals, {.token = kToken});
  ASSERT_TRUE(server.has_value()) << server.error().message;
  HttpClient client(PortOf(**server));
  const HttpAnswer refused = client.Get("/metrics");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.Header("WWW-Authenticate"), "Bearer");
  const std::string header = "Authorization: Bearer " + std::string(kToken) + "\r\n";
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
