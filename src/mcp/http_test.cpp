// SPDX-License-Identifier: Apache-2.0
#include "mcp/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "mcp/source.h"
#include "server/testing/http_client.h"
#include "server/testing/tokens_file.h"

namespace gpusonde::mcp {
namespace {

using nlohmann::json;
using server::HttpRequest;

constexpr const char* kPingPost = R"({"jsonrpc":"2.0","id":1,"method":"ping"})";

class McpHttp : public testing::Test {
 protected:
  server::HttpResponse Post(HttpRequest request) {
    if (request.path.empty()) request.path = kHttpPath;
    if (request.host.empty()) request.host = "127.0.0.1:7180";
    if (request.body.empty()) request.body = kPingPost;
    return PostHandler(server_, {})(request);
  }

  std::unique_ptr<Source> source_ =
      ServerSource([](const std::string&) -> Result<std::string> { return "{}"; });
  Server server_{*source_};
  const server::TokensFile tokens_{{{"assistant", server::Scope::kRead}}};
};

TEST_F(McpHttp, ARequestIsAnsweredAndOtherMessagesAreAccepted) {
  const auto response = Post({});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(json::parse(*response.body)["result"], json::object());
  EXPECT_EQ(Post({.body = R"({"jsonrpc":"2.0","method":"notifications/initialized"})"}).status, 202);
  EXPECT_EQ(Post({.body = R"({"jsonrpc":"2.0","id":1,"result":{}})"}).status, 202);
  const auto batch = Post({.body = "[]"});
  EXPECT_EQ(batch.status, 400);
  EXPECT_EQ(json::parse(*batch.body)["error"]["code"], -32600);
  EXPECT_EQ(Post({.path = "/api/v1/overview"}).status, 404);
}

TEST_F(McpHttp, OtherOriginsHostsAndRevisionsAreRefused) {
  for (const char* origin : {"http://evil.example", "https://localhost.evil.example", "null",
                             "file://localhost", "http://127.0.0.1.evil.example:80"})
    EXPECT_EQ(Post({.origin = origin}).status, 403) << origin;
  for (const char* origin : {"http://localhost:3000", "http://127.0.0.1", "https://[::1]:8080"})
    EXPECT_EQ(Post({.origin = origin}).status, 200) << origin;
  EXPECT_EQ(Post({.host = "rebound.example:7180"}).status, 403);
  EXPECT_EQ(Post({.mcp_protocol_version = "2024-11-05"}).status, 400);
  EXPECT_EQ(Post({.mcp_protocol_version = "2025-06-18"}).status, 200);
}

TEST_F(McpHttp, TheServerNeedsItsTokenAndHasNoStream) {
  EXPECT_FALSE(HttpTransport::Start(server_, {.listen = {}, .guard = {}}).has_value());
  const auto transport = HttpTransport::Start(server_, {.listen = {}, .guard = {.access = tokens_.Open()}});
  ASSERT_TRUE(transport.has_value()) << transport.error().message;
  const std::string url = (*transport)->Url();
  server::HttpClient client(static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
  const std::string authorization = "Authorization: Bearer " + server::TokensFile::Of("assistant") + "\r\n";
  EXPECT_EQ(client.Get("/mcp").status, 401);
  EXPECT_EQ(client.Get("/mcp", authorization).status, 405);
  const auto post = [&](const std::string& headers, std::string_view body) {
    client.Send("POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + headers +
                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
    return client.Receive().value_or(server::HttpAnswer{}).status;
  };
  EXPECT_EQ(post(authorization, R"({"jsonrpc":"2.0","method":"notifications/initialized"})"), 202);
  EXPECT_EQ(post(authorization, kPingPost), 200) << "on the same connection";
  EXPECT_EQ(post(authorization + "Origin: http://evil.example\r\n", kPingPost), 403);
}

TEST_F(McpHttp, APostWithoutTheTokenIsNotRead) {
  const auto transport = HttpTransport::Start(server_, {.listen = {}, .guard = {.access = tokens_.Open()}});
  ASSERT_TRUE(transport.has_value()) << transport.error().message;
  const std::string url = (*transport)->Url();
  server::HttpClient client(static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
  client.Send(
      "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token of others\r\n"
      "Content-Length: 1000000\r\n\r\n");
  EXPECT_EQ(client.Receive().value_or(server::HttpAnswer{}).status, 401);
}

}  // namespace
}  // namespace gpusonde::mcp
