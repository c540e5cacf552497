// SPDX-License-Identifier: Apache-2.0
#include "api_client.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "server/http_message.h"
#include "spool/host_name.h"

namespace gpusonde::app {

ApiServer ParseApiServer(const std::string& url_flag, const std::string& url, const std::string& host) {
  const auto parsed = agent::HttpUrl::Parse(url);
  if (!parsed.has_value()) throw CLI::ValidationError(url_flag, parsed.error().message);
  if (parsed->target != "/")
    throw CLI::ValidationError(url_flag, fmt::format("'{}' must not have a path", url));
  if (!host.empty()) {
    const auto checked = spool::CheckHostName(host);
    if (!checked.has_value()) throw CLI::ValidationError("--host", checked.error().message);
  }
  return {.url = *parsed, .host = host, .url_flag = url_flag};
}

Result<std::string> AskApi(const ApiServer& server, const std::string& target) {
  agent::HttpUrl url = server.url;
  const std::string address = fmt::format("{}:{}", url.host, url.port);
  url.target = "/api/v1/" + target;
  if (!server.host.empty())
    url.target += fmt::format("{}host={}", target.contains('?') ? '&' : '?', server.host);
  Result<agent::HttpReply> reply = agent::HttpGet(url, server.max_reply_bytes, server.timeout_ns);
  if (!reply.has_value())
    return Fail(ErrorCode::kUnavailable,
                fmt::format("can't reach gpusonde at {}: {}\nIs `gpusonde up` running? Start it with `sudo "
                            "gpusonde up`, or give its address with {}.",
                            address, reply.error().message, server.url_flag));
  if (reply->status == 200) return std::move(reply->body);
  const std::string message = server::ErrorMessageOf(reply->body);
  return Fail(ErrorCode::kUnavailable,
              message.empty() ? fmt::format("{} is not gpusonde: it answers {} with status {}\nGive the "
                                            "address of `gpusonde up` with {}.",
                                            address, url.target, reply->status, server.url_flag)
                              : fmt::format("{} answers: {}", address, message));
}

}  // namespace gpusonde::app
