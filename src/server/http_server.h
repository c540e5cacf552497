// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "base/result.h"
#include "server/http_message.h"
#include "server/listen_address.h"

namespace gpusonde::server {

struct HttpRoutes {
  // Paths that begin with "/api/": may take long, runs on a worker thread.
  HttpHandler api;
  // All other paths: answers from memory, runs on the network's thread.
  HttpHandler files;
};

struct HttpServerOptions {
  ListenAddress listen;
  // Of the two cores that the smallest machines have, one query may take one while another goes on.
  int workers = 2;
  // Beyond, the connection that has waited longest for its next request is closed, or the new one when none
  // waits.
  size_t max_connections = 512;
  // For a whole request header to arrive, also the first of a connection that is kept open.
  std::chrono::milliseconds header_timeout = std::chrono::seconds(30);
};

// HTTP/1.1 for a browser on the same machine: GET and HEAD, keep-alive, pipelining, gzip, nothing else. It
// trusts nobody, for every page that the browser shows and every user of the machine may send it requests:
//  - on loopback it answers to the names of this machine only (else DNS rebinding would let any website read
//    the data), and the API refuses what the browser marks as sent by another site's page (Sec-Fetch-Site);
//  - a header has at most 16 KiB, an address 8 KiB, a body none;
//  - one thread does all the network, never waiting for a client; slow ones run into timeouts and their
//    number, and the memory of answers not yet fetched, are bounded;
//  - every answer forbids the page to load, send or be framed anywhere else.
class HttpServer {
 public:
  // Listens. Errors: kUnavailable when the port is taken, kPermissionDenied, kInvalidArgument for an address
  // that isn't this machine's; each names the address and what to do.
  static Result<std::unique_ptr<HttpServer>> Create(const HttpServerOptions& options, HttpRoutes routes);

  // The address in use, with the port that was chosen for 0.
  const ListenAddress& address() const;

  // Serves until Stop; call it once. Answers under way are finished by their handlers, not sent.
  void Run();

  // Makes Run return, or not begin. From any thread, any number of times.
  void Stop();

  ~HttpServer();

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::server
