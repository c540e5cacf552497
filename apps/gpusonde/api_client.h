// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/http_client.h"
#include "base/result.h"
#include "base/time.h"

namespace gpusonde::app {

// A running `gpusonde up`, `view` or `serve`, asked through its API (docs/api.md).
struct ApiServer {
  agent::HttpUrl url;
  std::string host;      // of `serve`; empty: the only one
  std::string url_flag;  // the option that names the server, for messages
  int64_t timeout_ns = 10 * kNanosPerSecond;
  size_t max_reply_bytes = size_t{16} << 20;
};

// The address of a server as options give it. Throws CLI::ValidationError, which names the option.
ApiServer ParseApiServer(const std::string& url_flag, const std::string& url, const std::string& host);

// The body of the response to GET /api/v1/`target`. Errors: kUnavailable without a response or with an error,
// whose message is the server's. Thread-safe.
Result<std::string> AskApi(const ApiServer& server, const std::string& target);

}  // namespace gpusonde::app
