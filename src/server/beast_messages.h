// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/beast/http.hpp>
#include <boost/system/error_code.hpp>
#include <cstdint>
#include <optional>

#include "server/admission.h"
#include "server/http_message.h"

// Between Beast's messages and ours.
namespace gpusonde::server {

inline constexpr uint32_t kMaxHeaderBytes = 16 << 10;

// How to send a response, from the request's header.
struct Framing {
  unsigned version = 11;
  bool keep_alive = false;
  bool head = false;
};

using BeastResponse = boost::beast::http::response<boost::beast::http::span_body<const char>>;

// Its texts point into `request`.
RequestHeader HeaderOf(const boost::beast::http::request<boost::beast::http::empty_body>& request);

// Whether the client sends its body only once it is told to (Expect: 100-continue), or has waited a while.
bool AwaitsContinue(const boost::beast::http::request<boost::beast::http::empty_body>& request);

// The response to bytes that are no request; empty if the client is gone.
std::optional<HttpResponse> RefusalOf(boost::system::error_code error);

// The response with the headers common to all. Its body points into `response`.
BeastResponse MessageOf(const HttpResponse& response, const Framing& framing, const Gate& gate);

}  // namespace gpusonde::server
