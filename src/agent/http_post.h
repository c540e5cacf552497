// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpusonde::agent {

// http[s]://HOST[:PORT][/PATH]; what user names and fragments it has is refused.
struct HttpUrl {
  bool tls = false;
  std::string host;  // without the brackets of an IPv6 address
  std::string port = "80";
  std::string target = "/";  // path and query

  // Errors: kInvalidArgument.
  static Result<HttpUrl> Parse(std::string_view text);
};

// POSTs a JSON body and waits for the answer's head, for so long at most (a name server that hangs may take
// longer). Anything but 2xx is an error, and so is over TLS a server that the machine's certificate
// authorities, or those in the file SSL_CERT_FILE, don't vouch for. Thread-safe.
Status HttpPost(const HttpUrl& url, std::string_view body, int64_t patience_ns);

}  // namespace gpusonde::agent
