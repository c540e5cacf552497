// SPDX-License-Identifier: Apache-2.0
#include "mcp/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <nlohmann/json.hpp>
#include <system_error>

#include "mcp/protocol.h"
#include "mcp/source.h"

namespace gpusonde::mcp {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::unique_ptr<Source> Unavailable() {
  return ServerSource([](const std::string& target) -> Result<std::string> {
    return Fail(ErrorCode::kUnavailable, "can't get " + target);
  });
}

// The response to one message; null if there is none.
json Ask(Server& server, std::string_view text) {
  const auto message = ParseMessage(text);
  if (!message.has_value()) return json::parse(message.error());
  const auto response = server.Handle(*message);
  return response.has_value() ? json::parse(*response) : json();
}

TEST(McpServer, InitializeAnswersWithItsOwnRevisionWhateverTheClientsIs) {
  const auto source = Unavailable();
  Server server(*source);
  for (const char* version : {"2025-06-18", "2024-11-05", "2099-01-01"}) {
    const json response = Ask(server, json{{"jsonrpc", "2.0"},
                                           {"id", "a"},
                                           {"method", "initialize"},
                                           {"params", {{"protocolVersion", version}}}}
                                          .dump());
    EXPECT_EQ(response["id"], "a");
    EXPECT_EQ(response["result"]["protocolVersion"], "2025-06-18");
    EXPECT_TRUE(response["result"]["capabilities"].contains("tools"));
    EXPECT_EQ(response["result"]["serverInfo"]["name"], "gpusonde");
  }
  EXPECT_EQ(Ask(server, R"({"jsonrpc":"2.0","id":1,"method":"initialize"})")["error"]["code"], -32602);
}

TEST(McpServer, ToolsAreStrictAndReadOnly) {
  const auto source = Unavailable();
  Server server(*source);
  const json tools = Ask(server, R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})")["result"]["tools"];
  ASSERT_FALSE(tools.empty());
  for (const json& tool : tools) {
    EXPECT_EQ(tool["inputSchema"]["additionalProperties"], false);
    EXPECT_EQ(tool["annotations"]["readOnlyHint"], true);
    EXPECT_EQ(tool["outputSchema"]["type"], "object");
    EXPECT_FALSE(tool["description"].get<std::string>().empty());
  }
}

TEST(McpServer, WrongArgumentsAreInvalidParams) {
  const auto source = Unavailable();
  Server server(*source);
  const auto code_of = [&server](const json& params) {
    const json call = {{"jsonrpc", "2.0"}, {"id", 1}, {"method", "tools/call"}, {"params", params}};
    return Ask(server, call.dump())["error"]["code"];
  };
  EXPECT_EQ(code_of(json::object()), -32602);
  EXPECT_EQ(code_of({{"name", "reboot"}}), -32602);
  EXPECT_EQ(code_of({{"name", "overview"}, {"arguments", 3}}), -32602);
  for (const json& arguments : std::vector<json>{{{"verbose", true}},
                                                 {{"limit", 0}},
                                                 {{"limit", 101}},
                                                 {{"limit", "5"}},
                                                 {{"limit", 1.5}},
                                                 {{"last_s", -1}},
                                                 {{"from_us", 18446744073709551615U}}})
    EXPECT_EQ(code_of({{"name", "overview"}, {"arguments", arguments}}), -32602) << arguments;
  for (const json& arguments : std::vector<json>{{{"process", "hpc"}},
                                                 {{"type", "disk"}},
                                                 {{"filter", ""}},
                                                 {{"filter", std::string(1001, 'x')}},
                                                 {{"filter", std::string("a\0b", 3)}}})
    EXPECT_EQ(code_of({{"name", "hottest_paths"}, {"arguments", arguments}}), -32602) << arguments;
}

TEST(McpServer, UnknownMethodsAreErrorsAndUnknownNotificationsAreIgnored) {
  const auto source = Unavailable();
  Server server(*source);
  EXPECT_EQ(Ask(server, R"({"jsonrpc":"2.0","id":1,"method":"resources/list"})")["error"]["code"], -32601);
  EXPECT_TRUE(Ask(server, R"({"jsonrpc":"2.0","method":"notifications/roots/list_changed"})").is_null());
  EXPECT_EQ(Ask(server, R"({"jsonrpc":"2.0","id":1,"method":"ping"})")["result"], json::object());
}

TEST(McpServer, AnErrorOfTheSourceIsAResultOfTheTool) {
  const auto source = Unavailable();
  Server server(*source);
  const json response =
      Ask(server, R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"overview"}})");
  EXPECT_EQ(response["id"], 7);
  EXPECT_EQ(response["result"]["isError"], true);
  EXPECT_THAT(response["result"]["content"][0]["text"].get<std::string>(), HasSubstr("can't get overview"));
}

TEST(McpServer, ACallForWhichThereIsNoMemoryOrThreadEndsAlone) {
  int asked = 0;
  const auto source = ServerSource([&](const std::string& target) -> Result<std::string> {
    if (++asked == 1) throw std::bad_alloc();
    if (asked == 2) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    return Fail(ErrorCode::kUnavailable, "can't get " + target);
  });
  Server server(*source);
  for (const char* expected : {"more memory than allowed", "can't be run now", "can't get overview"}) {
    const json response =
        Ask(server, R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"overview"}})");
    EXPECT_EQ(response["result"]["isError"], true);
    EXPECT_THAT(response["result"]["content"][0]["text"].get<std::string>(), HasSubstr(expected));
  }
}

}  // namespace
}  // namespace gpusonde::mcp
