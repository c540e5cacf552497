// SPDX-License-Identifier: Apache-2.0
#include "server/sql_post.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/ascii.h"
#include "base/result.h"

namespace gpusonde::server {
namespace {

// Whether the header names this type, whatever its parameters.
bool IsOfType(std::string_view content_type, std::string_view type) {
  std::string_view name = content_type.substr(0, std::min(content_type.find(';'), content_type.size()));
  while (name.ends_with(' ')) name.remove_suffix(1);
  return EqualsIgnoringCase(name, type);
}

Status AddJsonParameters(HttpRequest& request) {
  const nlohmann::json body = nlohmann::json::parse(request.body, nullptr, false);
  if (!body.is_object()) return Fail(ErrorCode::kInvalidArgument, R"(the body must be {"sql":"STATEMENT"})");
  for (const auto& [name, value] : body.items()) {
    if (!value.is_string() && !value.is_number_integer())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("parameter '{}' of the body is neither a text nor a whole number", name));
    request.query.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return {};
}

}  // namespace

HttpHandler AnsweringSqlPosts(HttpHandler api) {
  return [api = std::move(api)](const HttpRequest& posted) {
    if (posted.path != kQueryPath)
      return ErrorResponse(405, {ErrorCode::kUnsupported, fmt::format("{} takes no POST", posted.path)});
    HttpRequest request = posted;
    if (IsOfType(request.content_type, "text/plain")) {
      request.query.emplace_back("sql", request.body);
    } else if (!IsOfType(request.content_type, "application/json")) {
      return ErrorResponse(
          415, {ErrorCode::kUnsupported, "the body must be a statement as text/plain, or application/json"});
    } else if (const Status added = AddJsonParameters(request); !added.has_value()) {
      return ErrorResponse(added.error());
    }
    request.body.clear();
    return api(request);
  };
}

}  // namespace gpusonde::server
