// SPDX-License-Identifier: Apache-2.0
#include "server/http_message.h"

#include <nlohmann/json.hpp>
#include "base/gzip.h"
#include "base/json_writer.h"

namespace gpusonde::server {
namespace {

// About one packet: compressing less saves no round trip.
constexpr size_t kWorthCompressing = 1024;

int StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return 400;
    case ErrorCode::kPermissionDenied:
      return 403;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kUnsupported:
      return 501;
    case ErrorCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

}  // namespace

HttpResponse ContentResponse(std::string_view content_type, std::string body) {
  return {.content_type = std::string(content_type),
          .body = std::make_shared<const std::string>(std::move(body))};
}

HttpResponse JsonResponse(std::string json) { return ContentResponse("application/json", std::move(json)); }

HttpResponse PlainResponse(std::string text) {
  return ContentResponse("text/plain; charset=utf-8", std::move(text));
}

HttpResponse ErrorResponse(int status, const Error& error) {
  JsonWriter json;
  json.BeginObject().Key("error").BeginObject();
  json.Field("code", Name(error.code)).Field("message", error.message);
  json.EndObject().EndObject();
  HttpResponse response = JsonResponse(json.Take());
  response.status = status;
  return response;
}

HttpResponse ErrorResponse(const Error& error) { return ErrorResponse(StatusOf(error.code), error); }

std::string ErrorMessageOf(std::string_view body) {
  const nlohmann::json answer = nlohmann::json::parse(body, nullptr, false);
  if (!answer.is_object() || !answer.contains("error") || !answer["error"].is_object()) return "";
  const nlohmann::json& error = answer["error"];
  const auto message = error.find("message");
  return message != error.end() && message->is_string() ? message->get<std::string>() : "";
}

HttpResponse Compressed(HttpResponse response, bool accepts_gzip) {
  if (!accepts_gzip || response.gzipped || !response.body || response.body->size() <= kWorthCompressing)
    return response;
  response.body = std::make_shared<const std::string>(Gzip(*response.body, kGzipFast));
  response.gzipped = true;
  return response;
}

}  // namespace gpusonde::server
