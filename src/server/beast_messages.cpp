// SPDX-License-Identifier: Apache-2.0
#include "server/beast_messages.h"

#include <fmt/format.h>

#include <string_view>

#include "base/ascii.h"
#include "base/time.h"

namespace gpusonde::server {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

// Pages may load resources from here only and may not be framed.
constexpr std::string_view kContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

RequestHeader HeaderOf(const http::request<http::empty_body>& request) {
  return {.method = View(request.method_string()),
          .target = View(request.target()),
          .hosts = request.count(http::field::host),
          .host = View(request[http::field::host]),
          .fetch_site = View(request["Sec-Fetch-Site"]),
          .if_none_match = View(request[http::field::if_none_match]),
          .accept = View(request[http::field::accept]),
          .accept_encoding = View(request[http::field::accept_encoding]),
          .authorization = View(request[http::field::authorization]),
          .origin = View(request[http::field::origin]),
          .mcp_protocol_version = View(request["MCP-Protocol-Version"]),
          .content_type = View(request[http::field::content_type]),
          .cookie = View(request[http::field::cookie])};
}

bool AwaitsContinue(const http::request<http::empty_body>& request) {
  return request.version() >= 11 && EqualsIgnoringCase(View(request[http::field::expect]), "100-continue");
}

std::optional<HttpResponse> RefusalOf(error_code error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return ErrorResponse(431, {ErrorCode::kInvalidArgument,
                               fmt::format("the request's header has more than {} bytes", kMaxHeaderBytes)});
  if (error == http::error::body_limit)
    return ErrorResponse(413, {ErrorCode::kInvalidArgument, "a request must not have a body"});
  static const auto& http_errors = error_code(http::error::bad_method).category();
  if (error.category() != http_errors || error == http::error::end_of_stream ||
      error == http::error::partial_message)
    return std::nullopt;
  return ErrorResponse(400,
                       {ErrorCode::kInvalidArgument, fmt::format("malformed HTTP: {}", error.message())});
}

BeastResponse MessageOf(const HttpResponse& response, const Framing& framing, const Gate& gate) {
  const std::string_view body = response.body ? *response.body : std::string_view();
  BeastResponse message(static_cast<http::status>(response.status), framing.version);
  message.body() = {body.data(), body.size()};
  message.keep_alive(framing.keep_alive);
  message.set(http::field::cache_control, response.cache_control);
  message.set("Content-Security-Policy", kContentSecurityPolicy);
  message.set("X-Content-Type-Options", "nosniff");
  message.set("X-Frame-Options", "DENY");
  message.set("Referrer-Policy", "no-referrer");
  message.set("Cross-Origin-Opener-Policy", "same-origin");
  message.set("Cross-Origin-Resource-Policy", "same-origin");
  message.set(http::field::vary, "Accept-Encoding");
  if (!response.content_type.empty()) message.set(http::field::content_type, response.content_type);
  if (!response.etag.empty()) message.set(http::field::etag, response.etag);
  if (response.gzipped) message.set(http::field::content_encoding, "gzip");
  if (response.session.has_value())
    message.set(
        http::field::set_cookie,
        fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{}", CookieName(gate),
                    *response.session, response.session->empty() ? 0 : Access::kSessionNs / kNanosPerSecond,
                    gate.tls ? "; Secure" : ""));
  if (response.cpu_ns.has_value())
    message.set("Server-Timing",
                fmt::format("cpu;dur={:.3f}", static_cast<double>(*response.cpu_ns) / kNanosPerMilli));
  if (response.status == 401) message.set(http::field::www_authenticate, "Bearer");
  if (response.status == 405)
    message.set(http::field::allow, gate.takes_posts ? "GET, HEAD, POST" : "GET, HEAD");
  if (response.status != 304) message.content_length(body.size());
  return message;
}

}  // namespace gpusonde::server
