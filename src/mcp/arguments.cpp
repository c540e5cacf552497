// SPDX-License-Identifier: Apache-2.0
#include "mcp/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/id128.h"
#include "base/json_writer.h"

namespace gpusonde::mcp {
namespace {

using nlohmann::json;
using Type = Parameter::Type;

std::unexpected<Error> Wrong(const Parameter& parameter, std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("argument '{}' must be {}", parameter.name, what));
}

std::optional<int64_t> IntegerOf(const json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}) return std::nullopt;
  if (value.is_number_integer()) return value.get<int64_t>();
  return std::nullopt;
}

Result<std::variant<int64_t, std::string>> Check(const Parameter& parameter, const json& value) {
  if (parameter.type == Type::kInteger) {
    const std::optional<int64_t> integer = IntegerOf(value);
    if (!integer.has_value() || *integer < parameter.min || *integer > parameter.max)
      return Wrong(parameter, fmt::format("a whole number from {} to {}", parameter.min, parameter.max));
    return *integer;
  }
  std::string text = value.is_string() ? value.get<std::string>() : "";
  if (parameter.type == Type::kChoice) {
    if (!value.is_string() || std::ranges::find(parameter.choices, text) == parameter.choices.end())
      return Wrong(parameter, fmt::format("one of {}", fmt::join(parameter.choices, ", ")));
  } else if (parameter.type == Type::kId) {
    if (!Id128::FromHex(text).has_value()) return Wrong(parameter, "an id of 32 hex digits");
  } else if (text.empty() || text.size() > parameter.max_bytes || text.find('\0') != std::string::npos) {
    return Wrong(parameter, fmt::format("a text of 1 to {} bytes without NUL", parameter.max_bytes));
  }
  return text;
}

void WriteSchema(JsonWriter& schema, const Parameter& parameter) {
  schema.Key(parameter.name).BeginObject();
  schema.Field("type", parameter.type == Type::kInteger ? "integer" : "string");
  schema.Field("description", parameter.description);
  if (parameter.type == Type::kInteger) {
    schema.Field("minimum", parameter.min).Field("maximum", parameter.max);
    if (parameter.otherwise.has_value()) schema.Field("default", *parameter.otherwise);
  } else if (parameter.type == Type::kChoice) {
    schema.Key("enum").BeginArray();
    for (const std::string_view choice : parameter.choices) schema.Value(choice);
    schema.EndArray().Field("default", parameter.choices.front());
  } else if (parameter.type == Type::kId) {
    schema.Field("pattern", "^[0-9a-f]{32}$");
  } else {
    schema.Field("minLength", 1).Field("maxLength", static_cast<int64_t>(parameter.max_bytes));
  }
  schema.EndObject();
}

}  // namespace

Result<Arguments> Arguments::Parse(std::span<const Parameter> parameters, std::string_view json_text) {
  const json given = json::parse(json_text, nullptr, false);
  if (!given.is_object()) return Fail(ErrorCode::kInvalidArgument, "arguments must be an object");
  Arguments arguments;
  for (const auto& [name, value] : given.items()) {
    const auto parameter = std::ranges::find(parameters, std::string_view(name), &Parameter::name);
    if (parameter == parameters.end())
      return Fail(ErrorCode::kInvalidArgument, fmt::format("there is no argument '{}'", name));
    ASSIGN_OR_RETURN(arguments.values_[name], Check(*parameter, value));
  }
  for (const Parameter& parameter : parameters) {
    if (given.contains(parameter.name)) continue;
    const std::string name(parameter.name);
    if (parameter.required)
      return Fail(ErrorCode::kInvalidArgument, fmt::format("argument '{}' is missing", name));
    if (parameter.otherwise.has_value()) arguments.values_[name] = *parameter.otherwise;
    if (!parameter.choices.empty()) arguments.values_[name] = std::string(parameter.choices.front());
  }
  return arguments;
}

std::optional<int64_t> Arguments::Integer(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return std::get<int64_t>(found->second);
}

std::string Arguments::Text(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : std::get<std::string>(found->second);
}

std::string InputSchema(std::span<const Parameter> parameters) {
  JsonWriter schema;
  schema.BeginObject().Field("type", "object").Key("properties").BeginObject();
  for (const Parameter& parameter : parameters) WriteSchema(schema, parameter);
  schema.EndObject().Key("required").BeginArray();
  for (const Parameter& parameter : parameters)
    if (parameter.required) schema.Value(parameter.name);
  schema.EndArray().Field("additionalProperties", false).EndObject();
  return schema.Take();
}

}  // namespace gpusonde::mcp
