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

bool NamesThisMachine(std::string_view host, const ListenAddress& listening) {
  const std::string_view name = HostWithoutPort(host);
  return EqualsIgnoringCase(name, "localhost") || name == "127.0.0.1" || name == "[::1]" ||
         name == listening.ip;
}

}  // namespace

std::expected<HttpRequest, HttpResponse> Admit(const RequestHeader& header, const ListenAddress& listening) {
  if (header.method != "GET" && header.method != "HEAD")
    return Refuse(405, ErrorCode::kUnsupported,
                  fmt::format("method {} is not supported; use GET", header.method));
  if (header.target.size() > kMaxTargetBytes)
    return Refuse(
        414, ErrorCode::kInvalidArgument,
        fmt::format("the address has {} bytes, the limit is {}", header.target.size(), kMaxTargetBytes));
  if (header.hosts != 1)
    return Refuse(400, ErrorCode::kInvalidArgument,
                  fmt::format("a request must have exactly one Host header, not {}", header.hosts));
  if (listening.IsLoopback() && !NamesThisMachine(header.host, listening))
    return Refuse(
        403, ErrorCode::kPermissionDenied,
        fmt::format("this server only serves its own machine: it accepts the hosts localhost, 127.0.0.1 and "
                    "[::1], not '{}'; open http://{}/",
                    header.host, listening.ToText()));
  Result<Target> target = ParseTarget(header.target);
  if (!target.has_value()) return std::unexpected(ErrorResponse(target.error()));
  if (IsApiPath(target->path) && !header.fetch_site.empty() && header.fetch_site != "same-origin" &&
      header.fetch_site != "none")
    return Refuse(
        403, ErrorCode::kPermissionDenied,
        "the API refuses requests from pages of other sites; open it from its own page or directly");
  return HttpRequest{.path = std::move(target->path),
                     .query = std::move(target->query),
                     .if_none_match = std::string(header.if_none_match),
                     .accepts_gzip = AcceptsGzip(header.accept_encoding)};
}

bool IsApiPath(std::string_view path) { return path == "/api" || path.starts_with("/api/"); }

}  // namespace gpusonde::server
