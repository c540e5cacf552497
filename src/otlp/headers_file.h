// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "net/http_client.h"

namespace gpusonde::otlp {

// Reads a file of HTTP headers, a "Name: value" a line, such as "Authorization: Bearer …"; empty lines and
// those that begin with # are skipped. Errors: kInvalidArgument, with the line's number and without its text,
// which may be a secret, for anything else, for more than 32 headers or 16 KiB, and for a header that the
// client sets itself; those of OpenRegular. Thread-safe.
Result<std::vector<net::HttpHeader>> ReadHeaders(const std::string& path);

}  // namespace gpusonde::otlp
