// SPDX-License-Identifier: Apache-2.0
#include "mcp/http.h"

#include <fmt/format.h>

#include <string_view>
#include <system_error>
#include <utility>

#include "mcp/protocol.h"
#include "server/admission.h"
#include "server/metrics_server.h"

namespace gpusonde::mcp {
namespace {

using server::HttpRequest;
using server::HttpResponse;

// One call runs at a time; the others are for pings and lists meanwhile.
constexpr int kWorkers = 4;
constexpr size_t kMaxBodiesBytes = 8 * kMaxMessageBytes;

// "http://localhost:7180" of a page on this machine, or a page of the host that was asked.
bool IsOwnOrigin(std::string_view origin, std::string_view host, const server::ListenAddress& listening) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!origin.starts_with(scheme)) continue;
    const std::string_view of = origin.substr(scheme.size());
    return of == host || server::NamesThisMachine(of, listening);
  }
  return false;
}

HttpResponse NotHere(const HttpRequest& request) {
  return server::ErrorResponse(
      {ErrorCode::kNotFound, fmt::format("there is no '{}' here, only {}", request.path, kHttpPath)});
}

HttpResponse Refuse(int status, std::string message) {
  return server::ErrorResponse(status, {ErrorCode::kInvalidArgument, std::move(message)});
}

HttpResponse Answer(Server& server, const HttpRequest& request) {
  const auto message = ParseMessage(request.body);
  if (!message.has_value()) {
    HttpResponse response = server::JsonResponse(message.error());
    response.status = 400;
    return response;
  }
  if (message->kind != Message::Kind::kRequest) return {.status = 202};
  return server::JsonResponse(*server.Handle(*message));
}

}  // namespace

server::HttpHandler PostHandler(Server& server, const server::ListenAddress& listening) {
  return [&server, listening](const HttpRequest& request) {
    if (request.path != kHttpPath) return NotHere(request);
    if (listening.IsLoopback() && !server::NamesThisMachine(request.host, listening))
      return Refuse(403, fmt::format("the host '{}' is not this machine", request.host));
    if (!request.origin.empty() && !IsOwnOrigin(request.origin, request.host, listening))
      return Refuse(403, fmt::format("requests from pages of {} are not allowed", request.origin));
    if (!request.mcp_protocol_version.empty() && request.mcp_protocol_version != kProtocolVersion)
      return Refuse(400, fmt::format("MCP-Protocol-Version {} is not supported, only {}",
                                     request.mcp_protocol_version, kProtocolVersion));
    return Answer(server, request);
  };
}

Result<std::unique_ptr<HttpTransport>> HttpTransport::Start(Server& server, const Options& options) {
  if (options.guard.access == nullptr) return Fail(ErrorCode::kInvalidArgument, "MCP over HTTP needs tokens");
  const auto get = [](const HttpRequest& request) {
    return request.path == kHttpPath ? Refuse(405, "there is no stream to GET here; POST messages")
                                     : NotHere(request);
  };
  ASSIGN_OR_RETURN(std::unique_ptr<server::HttpServer> http,
                   server::HttpServer::Create({.listen = options.listen,
                                               .guard = options.guard,
                                               .post_scope = server::Scope::kRead,
                                               .max_body_bytes = kMaxMessageBytes,
                                               .max_bodies_bytes = kMaxBodiesBytes,
                                               .workers = kWorkers},
                                              {.api = get,
                                               .files = server::AnsweringHealth(NotHere),
                                               .uploads = PostHandler(server, options.listen)}));
  try {
    return std::unique_ptr<HttpTransport>(new HttpTransport(std::move(http)));
  } catch (const std::system_error& error) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("can't start a thread for the server: {}", error.what()));
  }
}

HttpTransport::HttpTransport(std::unique_ptr<server::HttpServer> http)
    : http_(std::move(http)), thread_([this] { http_->Run(); }) {}

HttpTransport::~HttpTransport() {
  http_->Stop();
  thread_.join();
}

std::string HttpTransport::Url() const {
  std::string url = http_->Url();
  url.pop_back();  // its path, "/"
  return url + std::string(kHttpPath);
}

}  // namespace gpusonde::mcp
