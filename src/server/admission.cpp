// SPDX-License-Identifier: Apache-2.0
#include "server/admission.h"

#include <fmt/format.h>

#include <utility>

#include "server/ascii.h"
#include "server/gzip.h"
#include "server/url.h"

namespace gpusonde::server {
namespace {

std::unexpected<HttpResponse> Refuse(int status, ErrorCode code, std::string message) {
  return std::unexpected(ErrorResponse(status, {code, std::move(message)}));
}

// In time that doesn't depend on where the texts differ.
bool EqualsSecret(std::string_view given, std::string_view secret) {
  if (given.size() != secret.size()) return false;
  unsigned differing = 0;
  for (size_t i = 0; i < given.size(); ++i)
    differing |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(secret[i]);
  return differing == 0;
}

bool HasToken(std::string_view authorization, std::string_view token) {
  constexpr std::string_view kScheme = "bearer ";
  return authorization.size() > kScheme.size() &&
         EqualsIgnoringCase(authorization.substr(0, kScheme.size()), kScheme) &&
         EqualsSecret(authorization.substr(kScheme.size()), token);
}

// Probes of Kubernetes have no token.
bool IsProbe(std::string_view path) { return path == "/healthz" || path == "/readyz"; }

}  // namespace

std::expected<HttpRequest, HttpResponse> Admit(const RequestHeader& header, const ListenAddress& listening,
                                               std::string_view token, bool takes_posts) {
  const bool is_post = takes_posts && header.method == "POST";
  if (header.method != "GET" && header.method != "HEAD" && !is_post)
    return Refuse(405, ErrorCode::kUnsupported,
                  fmt::format("method {} is not supported; use GET", header.method));
  if (header.target.size() > kMaxTargetBytes)
    return Refuse(
        414, ErrorCode::kInvalidArgument,
        fmt::format("the address has {} bytes, the limit is {}", header.target.size(), kMaxTargetBytes));
  if (header.hosts != 1)
    return Refuse(400, ErrorCode::kInvalidArgument,
                  fmt::format("a request must have exactly one Host header, not {}", header.hosts));
  // No page of another site knows a token, and a proxy may pass on the name that it has itself.
  if (token.empty() && listening.IsLoopback() && !NamesThisMachine(header.host, listening))
    return Refuse(
        403, ErrorCode::kPermissionDenied,
        fmt::format("this server only serves its own machine: it accepts the hosts localhost, 127.0.0.1 and "
                    "[::1], not '{}'; open http://{}/",
                    header.host, listening.ToText()));
  Result<Target> target = ParseTarget(header.target);
  if (!target.has_value()) return std::unexpected(ErrorResponse(target.error()));
  if (!token.empty() && !IsProbe(target->path) && !HasToken(header.authorization, token))
    return Refuse(
        401, ErrorCode::kPermissionDenied,
        "this server needs the token that it was started with, as in 'Authorization: Bearer TOKEN'");
  if (IsApiPath(target->path) && !header.fetch_site.empty() && header.fetch_site != "same-origin" &&
      header.fetch_site != "none")
    return Refuse(
        403, ErrorCode::kPermissionDenied,
        "the API refuses requests from pages of other sites; open it from its own page or directly");
  if (is_post && !IsApiPath(target->path))
    return Refuse(405, ErrorCode::kUnsupported, fmt::format("{} takes no POST", target->path));
  return HttpRequest{.path = std::move(target->path),
                     .query = std::move(target->query),
                     .if_none_match = std::string(header.if_none_match),
                     .accept = std::string(header.accept),
                     .host = std::string(header.host),
                     .origin = std::string(header.origin),
                     .mcp_protocol_version = std::string(header.mcp_protocol_version),
                     .accepts_gzip = AcceptsGzip(header.accept_encoding),
                     .body = {}};
}

bool NamesThisMachine(std::string_view host, const ListenAddress& listening) {
  const std::string_view name = HostWithoutPort(host);
  return EqualsIgnoringCase(name, "localhost") || name == "127.0.0.1" || name == "[::1]" ||
         name == listening.ip;
}

bool IsApiPath(std::string_view path) {
  return path == "/api" || path.starts_with("/api/") || path == "/mcp" || path == "/metrics" ||
         path == "/readyz";
}

}  // namespace gpusonde::server
