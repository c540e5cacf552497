// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpusonde::net {

// http[s]://HOST[:PORT][/PATH]; user names and fragments are refused.
struct HttpUrl {
  bool tls = false;
  std::string host;  // without the brackets of an IPv6 address
  std::string port = "80";
  std::string target = "/";  // path and query

  // Errors: kInvalidArgument.
  static Result<HttpUrl> Parse(std::string_view text);
};

struct HttpHeader {
  std::string name;
  std::string value;
};

struct HttpBody {
  std::string_view content;
  std::string_view type = "application/json";
  std::string_view authorization = {};       // the header's text; empty: none
  std::string_view encoding = {};            // as in Content-Encoding; empty: none
  std::span<const HttpHeader> headers = {};  // more of them, checked by the caller
};

// PEM files of a client, read for each connection; each may be empty.
struct ClientTls {
  std::string ca;           // authorities to trust instead of the machine's
  std::string certificate;  // the client's own, and its key
  std::string key;
};

struct HttpReply {
  unsigned status = 0;
  std::string body;
  // The headers' texts; empty: none.
  std::string retry_after = {};
  std::string server_timing = {};
};

// POSTs a body and waits at most `timeout_ns` for the whole response (a name server that hangs may take
// longer), whatever its status. Errors: kIo when a server is connected and gives no response in that time, as
// one that is busy; kUnavailable otherwise without a response, and for one of more than `max_reply_bytes`;
// kPermissionDenied where TLS is refused, as a certificate that no authority of ClientTls::ca, or else of the
// machine and SSL_CERT_FILE, has signed, with what is wrong. Thread-safe.
Result<HttpReply> HttpExchange(const HttpUrl& url, const HttpBody& body, size_t max_reply_bytes,
                               int64_t timeout_ns, const ClientTls& tls = {});

// GETs the URL's target with this Authorization header, none if empty; as HttpExchange.
Result<HttpReply> HttpGet(const HttpUrl& url, std::string_view authorization, size_t max_reply_bytes,
                          int64_t timeout_ns, const ClientTls& tls = {});

// POSTs a JSON body and waits at most `timeout_ns` for the response's head, as HttpExchange does. Any status
// but 2xx is an error. Thread-safe.
Status HttpPost(const HttpUrl& url, std::string_view body, int64_t timeout_ns);

}  // namespace gpusonde::net
