// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gpusonde::server {

// The target of a request, percent-decoded.
struct Target {
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;
};

// Parses a request target in origin form, "/path?name=value&…" (RFC 9112, section 3.2.1). In the query a '+'
// is a space, as browsers write it. Errors: kInvalidArgument for any other form, a '%' without two hex
// digits, and texts that are not UTF-8 or hold a NUL.
Result<Target> ParseTarget(std::string_view target);

// The text percent-encoded, as a value in a query.
std::string EncodeQueryValue(std::string_view text);

// The host of a Host header without its port: "localhost" of "localhost:7171", "[::1]" of "[::1]:80"; empty
// if the header is malformed.
std::string_view HostWithoutPort(std::string_view host);

}  // namespace gpusonde::server
