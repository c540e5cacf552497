// SPDX-License-Identifier: Apache-2.0
#include "server/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "server/accept_encoding.h"
#include "server/sign_in.h"
#include "server/url.h"

namespace gpusonde::server {
namespace {

std::unexpected<HttpResponse> Refuse(int status, ErrorCode code, std::string message) {
  return std::unexpected(ErrorResponse(status, {code, std::move(message)}));
}

// The token; empty: none.
std::string_view TokenOf(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size() ||
      !EqualsIgnoringCase(authorization.substr(0, kScheme.size()), kScheme))
    return {};
  return authorization.substr(kScheme.size());
}

// The value of a cookie; empty: none.
std::string_view CookieOf(std::string_view cookies, std::string_view name) {
  while (!cookies.empty()) {
    const size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view cookie = cookies.substr(0, end);
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
    while (cookie.starts_with(' ')) cookie.remove_prefix(1);
    if (cookie.starts_with(name) && cookie.substr(name.size()).starts_with('='))
      return cookie.substr(name.size() + 1);
  }
  return {};
}

// Whether an Origin is this server's as the browser sees it. A proxy in front of it may add TLS.
bool IsOwnOrigin(std::string_view origin, const RequestHeader& header, bool tls) {
  for (const std::string_view scheme : {"https://", "http://"})
    if (origin.starts_with(scheme))
      return (scheme == "https://" || !tls) && EqualsIgnoringCase(origin.substr(scheme.size()), header.host);
  return false;
}

// Probes of Kubernetes have no token.
bool IsProbe(std::string_view path) { return path == "/healthz" || path == "/readyz"; }

// Whether a path needs no token: without tokens, all; else probes, and if browsers sign in, the page and the
// paths for signing in.
bool IsForAll(std::string_view path, const Gate& gate) {
  if (IsProbe(path) || gate.access == nullptr) return true;
  return gate.sign_in &&
         (!IsApiPath(path) || path == kSessionPath || path == kSignInPath || path == kSignOutPath);
}

// The caller whose token or session the request has; nullopt if it has none that is known.
Result<std::optional<Caller>> CallerOf(const RequestHeader& header, std::string_view session,
                                       Access& access) {
  if (const std::string_view token = TokenOf(header.authorization); !token.empty())
    return access.OfToken(token);
  if (!session.empty()) return access.OfSession(session);
  return std::optional<Caller>();
}

std::expected<std::optional<Caller>, HttpResponse> Authorise(const RequestHeader& header,
                                                             std::string_view path, std::string_view session,
                                                             const Gate& gate, bool is_post) {
  const bool for_all = IsForAll(path, gate);
  if (gate.access == nullptr || (for_all && path != kSessionPath)) return std::nullopt;
  const Result<std::optional<Caller>> caller = CallerOf(header, session, *gate.access);
  if (!caller.has_value()) return std::unexpected(ErrorResponse(503, caller.error()));
  if (for_all) return *caller;
  const Scope needed = is_post ? gate.post_scope : path == "/metrics" ? Scope::kMetrics : gate.get_scope;
  if (!caller->has_value())
    return Refuse(401, ErrorCode::kPermissionDenied,
                  header.authorization.empty() && session.empty()
                      ? fmt::format("this server needs a token of scope {}, as in 'Authorization: Bearer "
                                    "TOKEN'; `gpusonde token new` makes one at the server",
                                    Name(needed))
                  : header.authorization.empty()
                      ? "the session has ended; sign in again"
                      : "this server doesn't know the token: it was revoked, or is for another server");
  if (!Allows((*caller)->scope, needed))
    return Refuse(403, ErrorCode::kPermissionDenied,
                  fmt::format("the token '{}' is of scope {}, and this needs {}; `gpusonde token new` makes "
                              "one at the server",
                              (*caller)->name, Name((*caller)->scope), Name(needed)));
  return *caller;
}

}  // namespace

std::expected<HttpRequest, HttpResponse> Admit(const RequestHeader& header, const Gate& gate) {
  const bool is_post = gate.takes_posts && header.method == "POST";
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
  if (gate.access == nullptr && gate.listening.IsLoopback() && !NamesThisMachine(header.host, gate.listening))
    return Refuse(
        403, ErrorCode::kPermissionDenied,
        fmt::format("this server only serves its own machine: it accepts the hosts localhost, 127.0.0.1 and "
                    "[::1], not '{}'; open http://{}/",
                    header.host, gate.listening.ToText()));
  Result<Target> target = ParseTarget(header.target);
  if (!target.has_value()) return std::unexpected(ErrorResponse(target.error()));
  // An agent that was given this address needs the agents' address, not another token.
  if (is_post && gate.sign_in && target->path == "/api/v1/frames")
    return Refuse(405, ErrorCode::kUnsupported,
                  "this is the address of the pages; agents send to the one that `gpusonde serve --listen` "
                  "names, by default port 7272");
  const std::string_view session =
      gate.sign_in ? CookieOf(header.cookie, CookieName(gate)) : std::string_view();
  auto caller = Authorise(header, target->path, session, gate, is_post);
  if (!caller.has_value()) return std::unexpected(std::move(caller.error()));
  if (IsApiPath(target->path) && !header.fetch_site.empty() && header.fetch_site != "same-origin" &&
      header.fetch_site != "none")
    return Refuse(
        403, ErrorCode::kPermissionDenied,
        "the API refuses requests from pages of other sites; open it from its own page or directly");
  if (is_post && !IsApiPath(target->path))
    return Refuse(405, ErrorCode::kUnsupported, fmt::format("{} takes no POST", target->path));
  if (is_post && gate.sign_in &&
      (header.origin.empty() ? !session.empty() : !IsOwnOrigin(header.origin, header, gate.tls)))
    return Refuse(
        403, ErrorCode::kPermissionDenied,
        fmt::format("the Origin '{}' is not this server's, '{}'; a proxy in front of it must pass on "
                    "the browser's Host",
                    header.origin, header.host));
  return HttpRequest{.path = std::move(target->path),
                     .query = std::move(target->query),
                     .if_none_match = std::string(header.if_none_match),
                     .accept = std::string(header.accept),
                     .host = std::string(header.host),
                     .origin = std::string(header.origin),
                     .mcp_protocol_version = std::string(header.mcp_protocol_version),
                     .accepts_gzip = AcceptsGzip(header.accept_encoding),
                     .content_type = std::string(header.content_type),
                     .body = {},
                     .caller = *std::move(caller),
                     .session = std::string(session)};
}

std::string CookieName(const Gate& gate) {
  // Browsers accept the prefix over TLS only, and then from this host alone.
  return fmt::format("{}gpusonde-{}", gate.tls ? "__Host-" : "", gate.listening.port);
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
