// SPDX-License-Identifier: Apache-2.0
#include "mcp/protocol.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_depth.h"
#include "base/json_writer.h"

namespace gpusonde::mcp {
namespace {

using nlohmann::json;

std::unexpected<std::string> Refuse(std::string_view id, RpcError code, std::string_view message) {
  return std::unexpected(RpcErrorResponse(id, code, message));
}

bool IsId(const json& value) { return value.is_string() || value.is_number_integer(); }

}  // namespace

std::expected<Message, std::string> ParseMessage(std::string_view text) {
  using enum RpcError;
  if (text.size() > kMaxMessageBytes)
    return Refuse(kUnknownId, kInvalidRequest,
                  fmt::format("the message has more than {} bytes", kMaxMessageBytes));
  if (IsTooDeep(text))
    return Refuse(kUnknownId, kParse,
                  fmt::format("the message nests more than {} levels deep", kMaxJsonDepth));
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) return Refuse(kUnknownId, kParse, "the message is not JSON");
  if (parsed.is_array())
    return Refuse(kUnknownId, kInvalidRequest,
                  fmt::format("batches are not part of the protocol's revision {}", kProtocolVersion));
  if (!parsed.is_object()) return Refuse(kUnknownId, kInvalidRequest, "a message must be an object");
  const auto given_id = parsed.find("id");
  const bool has_id = given_id != parsed.end();
  if (has_id && !IsId(*given_id))
    return Refuse(kUnknownId, kInvalidRequest, "the id must be a string or a whole number");
  // A text that is no UTF-8 doesn't parse, so dump() can't fail.
  const std::string id = has_id ? given_id->dump() : std::string(kUnknownId);
  if (const auto version = parsed.find("jsonrpc"); version == parsed.end() || *version != "2.0")
    return Refuse(id, kInvalidRequest, "the message lacks \"jsonrpc\":\"2.0\"");
  const auto method = parsed.find("method");
  if (method == parsed.end()) {
    if (has_id && (parsed.contains("result") || parsed.contains("error")))
      return Message{.kind = Message::Kind::kResponse, .id = id, .method = {}};
    return Refuse(id, kInvalidRequest, "the message has no method");
  }
  if (!method->is_string()) return Refuse(id, kInvalidRequest, "the method must be a string");
  Message message{.kind = has_id ? Message::Kind::kRequest : Message::Kind::kNotification,
                  .id = id,
                  .method = method->get<std::string>()};
  if (const auto params = parsed.find("params"); params != parsed.end()) {
    if (!params->is_object()) return Refuse(id, kInvalidParams, "params must be an object");
    message.params = params->dump();
  }
  return message;
}

std::string ResultResponse(std::string_view id, std::string_view result) {
  return fmt::format(R"({{"jsonrpc":"2.0","id":{},"result":{}}})", id, result);
}

std::string RpcErrorResponse(std::string_view id, RpcError code, std::string_view message) {
  JsonWriter error;
  error.BeginObject().Field("code", static_cast<int32_t>(code)).Field("message", message).EndObject();
  return fmt::format(R"({{"jsonrpc":"2.0","id":{},"error":{}}})", id, error.Take());
}

std::optional<std::string> CancelledId(const Message& message) {
  if (message.kind != Message::Kind::kNotification || message.method != "notifications/cancelled")
    return std::nullopt;
  const json params = json::parse(message.params, nullptr, false);
  const auto id = params.find("requestId");
  if (id == params.end() || !IsId(*id)) return std::nullopt;
  return id->dump();
}

}  // namespace gpusonde::mcp
