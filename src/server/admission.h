// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <expected>
#include <string_view>

#include "server/http_message.h"
#include "server/listen_address.h"

namespace gpusonde::server {

// The parts of a request's header that decide whether it is answered. Absent headers are empty.
struct RequestHeader {
  std::string_view method;
  std::string_view target;
  size_t hosts = 0;  // how many Host headers there are
  std::string_view host;
  std::string_view fetch_site;  // Sec-Fetch-Site
  std::string_view if_none_match;
  std::string_view accept_encoding;
};

inline constexpr size_t kMaxTargetBytes = 8 << 10;

// The request, or the answer that refuses it: 405 unless GET or HEAD, 414 beyond kMaxTargetBytes, 400 for
// what is malformed, and 403
//  - on loopback, for a Host that isn't a name of this machine: a page of another site whose name was made to
//    resolve to 127.0.0.1 (DNS rebinding) sends that site's name, and would otherwise read everything;
//  - for an API request that the browser says comes from another site's page (Fetch Metadata): it couldn't
//    read the answer, but could keep the machine busy.
std::expected<HttpRequest, HttpResponse> Admit(const RequestHeader& header, const ListenAddress& listening);

// Whether a path belongs to the API.
bool IsApiPath(std::string_view path);

}  // namespace gpusonde::server
