// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpusonde::server {

// Whether an Accept-Encoding header's text allows gzip (RFC 9110, section 12.5.3).
bool AcceptsGzip(std::string_view accept_encoding);

}  // namespace gpusonde::server
