// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// POSTs a JSON body and waits at most `timeout_ns` for the response's head (a name server that hangs may take
// longer). Any status but 2xx is an error, and so is a TLS certificate that neither the machine's certificate
// authorities nor those in the file SSL_CERT_FILE have signed. Thread-safe.
Status HttpPost(const HttpUrl& url, std::string_view body, int64_t timeout_ns);

}  // namespace gpusonde::agent
