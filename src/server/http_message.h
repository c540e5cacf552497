// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "server/access.h"

namespace gpusonde::server {

// A request as handlers get it: one that passed the server's checks. A HEAD is turned into a GET.
struct HttpRequest {
  std::string path;                                        // decoded, begins with '/'
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in the order given
  // Headers' texts, empty when absent.
  std::string if_none_match;
  std::string accept;
  std::string host;
  std::string origin;
  std::string mcp_protocol_version;
  bool accepts_gzip = false;
  std::string content_type;
  std::string body;              // of a POST
  std::optional<Caller> caller;  // by a token or a session
  std::string session;           // the secret in the cookie of a session, whether it lasts or not
};

// A response. The server adds the headers common to all.
struct HttpResponse {
  int status = 200;
  std::string content_type;
  std::shared_ptr<const std::string> body;  // null: none
  bool gzipped = false;                     // `body` is gzip
  std::string cache_control = "no-store";
  std::string etag;  // quoted, as in the header; empty: none
  // The secret of a session that begins, for a cookie; empty: the session ends.
  std::optional<std::string> session = {};
  std::optional<int64_t> cpu_ns = {};  // that the process spent on it, if it was measured
};

// Must be thread-safe. An exception becomes a 500.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

HttpResponse ContentResponse(std::string_view content_type, std::string body);
HttpResponse JsonResponse(std::string json);
HttpResponse PlainResponse(std::string text);

// {"error":{"code":…,"message":…}} with that status.
HttpResponse ErrorResponse(int status, const Error& error);
// With the status that corresponds to the error's code: 400 invalid_argument, 403 permission_denied, 404
// not_found, 501 unsupported, 503 unavailable, otherwise 500.
HttpResponse ErrorResponse(const Error& error);

// The message in the body of such a response; empty for any other body.
std::string ErrorMessageOf(std::string_view body);

// The same response with a compressed body, if the client accepts it, it isn't compressed yet and it is long
// enough.
HttpResponse Compressed(HttpResponse response, bool accepts_gzip);

}  // namespace gpusonde::server
