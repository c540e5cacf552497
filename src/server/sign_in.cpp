// SPDX-License-Identifier: Apache-2.0
#include "server/sign_in.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/json_writer.h"

namespace gpusonde::server {
namespace {

constexpr size_t kMaxSignInBytes = 8 << 10;

HttpResponse SignIn(Access& access, const HttpRequest& request) {
  // Forms of other sites can't send this type.
  if (!request.content_type.starts_with("application/json"))
    return ErrorResponse(415, {ErrorCode::kUnsupported, "the body must be application/json"});
  if (request.body.size() > kMaxSignInBytes)
    return ErrorResponse(
        413, {ErrorCode::kInvalidArgument, fmt::format("the request's body has {} bytes, the limit is {}",
                                                       request.body.size(), kMaxSignInBytes)});
  const nlohmann::json body = nlohmann::json::parse(request.body, nullptr, false);
  if (!body.is_object() || !body.contains("token") || !body["token"].is_string())
    return ErrorResponse({ErrorCode::kInvalidArgument, R"(the body must be {"token":"TOKEN"})"});
  Result<Access::SignedIn> signed_in = access.SignIn(body["token"].get<std::string>(), Scope::kRead);
  if (!signed_in.has_value()) return ErrorResponse(503, signed_in.error());
  const std::optional<Caller>& caller = signed_in->caller;
  if (!caller.has_value())
    return ErrorResponse(401,
                         {ErrorCode::kPermissionDenied,
                          "This server doesn't know the token: it was revoked, or is for another server."});
  if (signed_in->secret.empty())
    return ErrorResponse(403, {ErrorCode::kPermissionDenied,
                               fmt::format("The token '{}' is of scope {}, and these pages need read.",
                                           caller->name, Name(caller->scope))});
  JsonWriter json;
  json.BeginObject().Field("name", caller->name).Field("scope", Name(caller->scope)).EndObject();
  HttpResponse response = JsonResponse(json.Take());
  response.session = std::move(signed_in->secret);
  return response;
}

}  // namespace

HttpHandler AnsweringSession(HttpHandler api, bool needs_sign_in) {
  return [api = std::move(api), needs_sign_in](const HttpRequest& request) {
    if (request.path != kSessionPath) return api(request);
    JsonWriter json;
    json.BeginObject().Field("needs_sign_in", needs_sign_in && !request.caller.has_value());
    json.Field("name", request.caller.has_value() ? request.caller->name : std::string());
    json.Field("scope", request.caller.has_value() ? Name(request.caller->scope) : std::string_view());
    json.EndObject();
    return JsonResponse(json.Take());
  };
}

HttpHandler SignInHandler(std::shared_ptr<Access> access, HttpHandler posts) {
  return [access = std::move(access), posts = std::move(posts)](const HttpRequest& request) {
    if (request.path == kSignInPath) return SignIn(*access, request);
    if (request.path != kSignOutPath && posts) return posts(request);
    if (request.path != kSignOutPath)
      return ErrorResponse(405, {ErrorCode::kUnsupported, fmt::format("{} takes no POST", request.path)});
    access->SignOut(request.session);
    HttpResponse response = JsonResponse("{}");
    response.session = "";
    return response;
  };
}

}  // namespace gpusonde::server
