// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "mcp/server.h"
#include "server/http_message.h"
#include "server/http_server.h"
#include "server/listen_address.h"

namespace gpusonde::mcp {

inline constexpr std::string_view kHttpPath = "/mcp";

// Answers POSTs to kHttpPath, each with one JSON response; there are no streams and no sessions. As the
// protocol demands, refuses an Origin that is neither this machine nor the requested host (403), on loopback
// also another Host (403), and other revisions of the protocol (400). Ignores cancellations, as the ids of
// different clients may be equal. `server` must outlive it.
server::HttpHandler PostHandler(Server& server, const server::ListenAddress& listening);

// The Streamable HTTP transport, on threads of its own.
class HttpTransport {
 public:
  struct Options {
    server::ListenAddress listen;
    server::Guard guard;  // with Access: every request needs a token of scope read
  };
  // Errors: those of server::HttpServer::Create; kInvalidArgument without Access.
  // `server` must outlive it.
  static Result<std::unique_ptr<HttpTransport>> Start(Server& server, const Options& options);

  // "http://127.0.0.1:7180/mcp".
  std::string Url() const;

  // Waits for the call that runs.
  ~HttpTransport();

 private:
  explicit HttpTransport(std::unique_ptr<server::HttpServer> http);

  std::unique_ptr<server::HttpServer> http_;
  std::thread thread_;
};

}  // namespace gpusonde::mcp
