// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace gpusonde::mcp {

// One argument of a tool: from its declaration come both the schema that clients see and the check of what
// they send.
struct Parameter {
  enum class Type : uint8_t { kInteger, kText, kChoice, kId };
  std::string_view name;
  std::string_view description;
  Type type = Type::kInteger;
  bool required = false;
  // Of kInteger. JavaScript's numbers are exact up to this.
  int64_t min = 0;
  int64_t max = int64_t{1} << 53;
  std::optional<int64_t> otherwise = {};       // the default of kInteger
  size_t max_bytes = 1000;                     // of kText
  std::vector<std::string_view> choices = {};  // of kChoice; the first is the default
};

// The arguments of a call, as declared.
class Arguments {
 public:
  // Errors: kInvalidArgument for unknown arguments, ones of another type or out of range, and missing ones.
  static Result<Arguments> Parse(std::span<const Parameter> parameters, std::string_view json);

  // The value or default; empty if there is neither.
  std::optional<int64_t> Integer(std::string_view name) const;
  // Of kText, kChoice and kId; "" if there is neither value nor default.
  std::string Text(std::string_view name) const;

 private:
  std::map<std::string, std::variant<int64_t, std::string>, std::less<>> values_;
};

// The JSON Schema of the arguments.
std::string InputSchema(std::span<const Parameter> parameters);

}  // namespace gpusonde::mcp
