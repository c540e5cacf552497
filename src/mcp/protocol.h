// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

// Messages of JSON-RPC 2.0 as the Model Context Protocol uses them
// (https://modelcontextprotocol.io/specification/2025-06-18/basic): one object each, never a batch.
namespace gpusonde::mcp {

// The revision of the protocol that this server speaks.
inline constexpr std::string_view kProtocolVersion = "2025-06-18";

// A message is refused beyond this size. The largest that a client has reason to send is an SQL statement.
inline constexpr size_t kMaxMessageBytes = size_t{1} << 20;

// JSON-RPC 2.0, section 5.1.
enum class RpcError : int32_t {
  kParse = -32700,
  kInvalidRequest = -32600,
  kUnknownMethod = -32601,
  kInvalidParams = -32602,
};

struct Message {
  enum class Kind : uint8_t { kRequest, kNotification, kResponse };
  Kind kind = Kind::kRequest;
  std::string id;             // of a request: a string or a whole number, as JSON text
  std::string method;         // empty for a response
  std::string params = "{}";  // an object, as JSON text
};

// Parses one message. The error is the response to send.
std::expected<Message, std::string> ParseMessage(std::string_view text);

// The responses to the request with that id, on one line. `result` is an object, as JSON text.
std::string ResultResponse(std::string_view id, std::string_view result);
std::string RpcErrorResponse(std::string_view id, RpcError code, std::string_view message);

// The id of a request whose message can't be read.
inline constexpr std::string_view kUnknownId = "null";

// The id, as JSON text, of the request that a `notifications/cancelled` names; nothing for other messages and
// malformed ones, which are to be ignored.
std::optional<std::string> CancelledId(const Message& message);

}  // namespace gpusonde::mcp
