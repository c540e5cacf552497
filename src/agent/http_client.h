// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpusonde::agent {

// http[s]://HOST[:PORT][/PATH]; user names and fragments are refused.
struct HttpUrl {
  bool tls = false;
  std::string host;  // without the brackets of an IPv6 address
  std::string port = "80";
  std::string target = "/";  // path and query

  // Errors: kInvalidArgument.
  static Result<HttpUrl> Parse(std::string_view text);
};

struct HttpBody {
  std::string_view content;
  std::string_view type = "application/json";
  std::string_view authorization = {};  // the header's text; empty: none
};
struct HttpReply {
  unsigned status = 0;
  std::string body;
};

// POSTs a body and waits at most `timeout_ns` for the whole response (a name server that hangs may take
// longer), whatever its status. Errors: kUnavailable without a response, also for a TLS certificate that
// neither the machine's certificate authorities nor those in the file SSL_CERT_FILE have signed, and for a
// response of more than `max_reply_bytes`. Thread-safe.
Result<HttpReply> HttpExchange(const HttpUrl& url, const HttpBody& body, size_t max_reply_bytes,
                               int64_t timeout_ns);

// GETs the URL's target; as HttpExchange.
Result<HttpReply> HttpGet(const HttpUrl& url, size_t max_reply_bytes, int64_t timeout_ns);

// POSTs a JSON body and waits at most `timeout_ns` for the response's head, as HttpExchange does. Any status
// but 2xx is an error. Thread-safe.
Status HttpPost(const HttpUrl& url, std::string_view body, int64_t timeout_ns);

}  // namespace gpusonde::agent
