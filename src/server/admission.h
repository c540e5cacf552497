// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include "server/access.h"
#include "server/http_message.h"
#include "server/listen_address.h"

namespace gpusonde::server {

// The parts of a request's header that decide whether it is served. Absent headers are empty.
struct RequestHeader {
  std::string_view method;
  std::string_view target;
  size_t hosts = 0;  // how many Host headers there are
  std::string_view host;
  std::string_view fetch_site;  // Sec-Fetch-Site
  std::string_view if_none_match;
  std::string_view accept;
  std::string_view accept_encoding;
  std::string_view authorization;
  std::string_view origin;
  std::string_view mcp_protocol_version;
  std::string_view content_type;
  std::string_view cookie;
};

// What an address asks of requests.
struct Gate {
  ListenAddress listening;
  bool tls = false;
  Access* access = nullptr;  // null: everybody has access
  Scope get_scope = Scope::kRead;
  Scope post_scope = Scope::kIngest;
  bool takes_posts = false;
  // Browsers exchange tokens for sessions here (server/sign_in.h), and what isn't the API is for everybody.
  bool sign_in = false;
};

inline constexpr size_t kMaxTargetBytes = 8 << 10;

// Returns the request, or the response that refuses it: 405 unless GET or HEAD, or a POST to the API where
// the address takes them; 414 beyond kMaxTargetBytes, 400 for malformed requests; with Access, unless the
// path is a probe's, 401 without a token (`Authorization: Bearer`) or session that is known, 403 for one of
// another scope, and 503 while the tokens can't be read; and 403
//
// - on loopback without Access, for a Host that isn't a name of this machine: if another site's name
//   resolves to 127.0.0.1 (DNS rebinding), its page sends that name and could otherwise read everything;
// - for an API request that the browser marks as coming from another site's page (Fetch Metadata): that page
//   could not read the response, but could keep the machine busy;
// - where browsers sign in, for a POST whose Origin isn't this server's, and for one with a session but
//   without an Origin.
std::expected<HttpRequest, HttpResponse> Admit(const RequestHeader& header, const Gate& gate);

// The name of a session's cookie. Ports share cookies, so that it names the port.
std::string CookieName(const Gate& gate);

// Whether a Host header, or an Origin without its scheme, names this machine as seen by itself.
bool NamesThisMachine(std::string_view host, const ListenAddress& listening);

// Whether a path belongs to the API, whose responses may take long: /api/…, /mcp, /metrics and /readyz.
bool IsApiPath(std::string_view path);

}  // namespace gpusonde::server
