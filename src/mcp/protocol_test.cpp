// SPDX-License-Identifier: Apache-2.0
#include "mcp/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gpusonde::mcp {
namespace {

using nlohmann::json;

// The code and the id of the response to what is no message.
struct Refusal {
  int code = 0;
  json id;
  bool operator==(const Refusal&) const = default;
};
Refusal RefusalOf(std::string_view text) {
  const auto message = ParseMessage(text);
  if (message.has_value()) return {};
  const json response = json::parse(message.error());
  EXPECT_EQ(response["jsonrpc"], "2.0");
  EXPECT_FALSE(response["error"]["message"].get<std::string>().empty());
  return {response["error"]["code"], response["id"]};
}

TEST(McpProtocol, WhatIsNoMessageIsRefusedWithItsCodeAndItsId) {
  const json none;
  EXPECT_EQ(RefusalOf("{"), (Refusal{-32700, none}));
  EXPECT_EQ(RefusalOf(""), (Refusal{-32700, none}));
  EXPECT_EQ(RefusalOf("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"), (Refusal{-32700, none}));
  EXPECT_EQ(RefusalOf("7"), (Refusal{-32600, none}));
  EXPECT_EQ(RefusalOf(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])"), (Refusal{-32600, none}));
  EXPECT_EQ(RefusalOf(R"({"jsonrpc":"2.0","id":null,"method":"ping"})"), (Refusal{-32600, none}));
  EXPECT_EQ(RefusalOf(R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})"), (Refusal{-32600, none}));
  EXPECT_EQ(RefusalOf(R"({"id":1,"method":"ping"})"), (Refusal{-32600, 1}));
  EXPECT_EQ(RefusalOf(R"({"jsonrpc":"1.0","id":1,"method":"ping"})"), (Refusal{-32600, 1}));
  EXPECT_EQ(RefusalOf(R"({"jsonrpc":"2.0","id":"a"})"), (Refusal{-32600, "a"}));
  EXPECT_EQ(RefusalOf(R"({"jsonrpc":"2.0","id":1,"method":4})"), (Refusal{-32600, 1}));
  EXPECT_EQ(RefusalOf(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[1]})"), (Refusal{-32602, 1}));
  EXPECT_EQ(RefusalOf(std::string(kMaxMessageBytes + 1, ' ')), (Refusal{-32600, none}));
  EXPECT_EQ(RefusalOf(std::string(kMaxMessageBytes / 2, '[')), (Refusal{-32700, none})) << "deep";
  const std::string open(kMaxMessageBytes / 3, '['), close(kMaxMessageBytes / 3, ']');
  EXPECT_EQ(RefusalOf(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":)" + open + close + "}}"),
            (Refusal{-32700, none}));
}

TEST(McpProtocol, KindsOfMessagesAreDistinguished) {
  const auto request = ParseMessage(R"({"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"a":1}})");
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->kind, Message::Kind::kRequest);
  EXPECT_EQ(request->id, "\"x\"");
  EXPECT_EQ(request->method, "tools/call");
  EXPECT_EQ(request->params, R"({"a":1})");
  const auto notification = ParseMessage(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  ASSERT_TRUE(notification.has_value());
  EXPECT_EQ(notification->kind, Message::Kind::kNotification);
  const auto response = ParseMessage(R"({"jsonrpc":"2.0","id":3,"result":{}})");
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->kind, Message::Kind::kResponse);
}

TEST(McpProtocol, MalformedCancellationsNameNoRequest) {
  const auto cancelled = [](std::string_view params) {
    return CancelledId({.kind = Message::Kind::kNotification,
                        .method = "notifications/cancelled",
                        .params = std::string(params)});
  };
  EXPECT_EQ(cancelled(R"({"requestId":7,"reason":"enough"})"), "7");
  EXPECT_EQ(cancelled(R"({"requestId":"7"})"), "\"7\"");
  EXPECT_EQ(cancelled(R"({"requestId":null})"), std::nullopt);
  EXPECT_EQ(cancelled("{}"), std::nullopt);
  EXPECT_EQ(CancelledId({.kind = Message::Kind::kNotification, .method = "notifications/progress"}),
            std::nullopt);
}

TEST(McpProtocol, ResponsesAreOneLine) {
  const std::string response = RpcErrorResponse("1", RpcError::kParse, "a\nb \"c\"");
  EXPECT_FALSE(response.contains('\n'));
  EXPECT_EQ(json::parse(response)["error"]["message"], "a\nb \"c\"");
}

}  // namespace
}  // namespace gpusonde::mcp
