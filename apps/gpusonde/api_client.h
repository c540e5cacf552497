// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/http_client.h"

namespace CLI {
class App;
}

namespace gpusonde::app {

// How a client shows who it is and checks the server.
struct ClientFlags {
  std::string token_file;  // empty: none
  std::string ca;          // empty: the machine's authorities
};

// Adds --token-file and --tls-ca to a command whose option `url_flag` names a server.
void AddClientFlags(CLI::App& command, const std::string& url_flag, ClientFlags& flags);

// The server that a command asks instead of reading files.
struct ServerFlags {
  std::string url;  // empty: files
  ClientFlags client;
  std::string host;  // of `serve`; empty: all
};

// Adds --server, and --token-file and --tls-ca, which need it. `what` completes "Ask …".
void AddServerFlags(CLI::App& command, const std::string& what, ServerFlags& flags);
// One of them must be given, and not both. Throws CLI::ValidationError.
void CheckFilesOrServer(const std::vector<std::string>& files, const ServerFlags& flags);
// Adds --host, which needs --server.
void AddHostFlag(CLI::App& command, ServerFlags& flags);

// Throws CLI::ValidationError for a file of TLS, of this option, with a URL that doesn't use it: it would be
// ignored. An empty file: the option isn't given.
void RefuseIgnoredTls(const std::string& url_flag, const net::HttpUrl& url, const std::string& tls_flag,
                      const std::string& file);

// Whether what is sent to the host stays on this machine.
bool IsThisMachine(const std::string& host);

// A running `gpusonde up`, `view` or `serve`, asked through its API (docs/api.md).
struct ApiServer {
  net::HttpUrl url;
  ClientFlags client;
  std::string host;      // of `serve`; empty: the only one
  std::string url_flag;  // the option that names the server, for messages
  std::string token_flag = "--token-file";
  int64_t timeout_ns = 10 * kNanosPerSecond;
  // What the command's user may do where no response comes in time, but to try again: "ask about …".
  std::string_view when_slow;
  size_t max_reply_bytes = size_t{16} << 20;
};

// The address of a server as options give it. Throws CLI::ValidationError, which names the option.
// A token goes over http:// to this machine only.
ApiServer ParseApiServer(const std::string& url_flag, const std::string& url, const std::string& host,
                         const ClientFlags& client);
inline ApiServer ParseApiServer(const ServerFlags& flags) {
  return ParseApiServer("--server", flags.url, flags.host, flags.client);
}

// A line for each host of an answer that failed, and why, each after a line feed; escaped.
std::string ListFailures(const std::vector<std::pair<std::string, std::string>>& hosts);

// The body of the response to GET /api/v1/`target`. Errors: kIo when the server runs and gives no response in
// time; kUnavailable when it can't be reached, or with an error, whose message is the server's; those of
// ReadToken, which is read each time. Thread-safe.
Result<std::string> AskApi(const ApiServer& server, const std::string& target);
struct TimedAnswer {
  std::string body;
  int64_t cost_ns = 0;  // the server's CPU time; of one that doesn't say, the time that it took
};
// The same with what it cost.
Result<TimedAnswer> AskApiTimed(const ApiServer& server, const std::string& target);
// The same of POST with a text as the body.
Result<std::string> PostToApi(const ApiServer& server, const std::string& target, std::string_view text);

}  // namespace gpusonde::app
