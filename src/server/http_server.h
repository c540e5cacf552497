// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/http_message.h"
#include "server/listen_address.h"

namespace gpusonde::server {

struct HttpRoutes {
  // Paths of the API (IsApiPath): may take long, runs on a worker thread.
  HttpHandler api;
  // All other paths: responses from memory, runs on the network's thread.
  HttpHandler files;
  // POST to a path of the API, on a worker thread; null: a 405.
  HttpHandler uploads;
};

struct HttpServerOptions {
  ListenAddress listen;
  std::string token;  // that requests must carry; empty: none
  // Bounds on the body of a POST and on all that are being received or handled; beyond the second, 503.
  size_t max_body_bytes = size_t{16} << 20;
  size_t max_bodies_bytes = size_t{64} << 20;
  // The smallest machines have two cores: one query may use one while another runs.
  int workers = 2;
  // Beyond this, the connection that has been idle longest is closed, or the new one if none is idle.
  size_t max_connections = 512;
  // For a whole request header to arrive, also for the first one of a kept connection.
  std::chrono::milliseconds header_timeout = std::chrono::seconds(30);
};

// HTTP/1.1 for a browser on the same machine: GET and HEAD, keep-alive, pipelining, gzip, nothing else; for
// agents also POST.
// Clients are untrusted, as any page in the browser and any user of the machine may send requests:
//
// - on loopback it only accepts the names of this machine (else DNS rebinding would let any website read the
// data), and
//   the API refuses requests that the browser marks as sent by another site's page (Sec-Fetch-Site);
// - a header has at most 16 KiB, an address 8 KiB; a body is only read of a POST that is admitted;
// - one thread does all network I/O without waiting for a client; slow clients run into timeouts, and the
// number of
//   connections and the memory of unfetched responses are bounded;
// - every response forbids the page to load from, send to or be framed by any other site.
class HttpServer {
 public:
  // Listens. Errors: kUnavailable if the port is in use, kPermissionDenied, kInvalidArgument for an address
  // that isn't this machine's; each names the address and what to do.
  static Result<std::unique_ptr<HttpServer>> Create(const HttpServerOptions& options, HttpRoutes routes);

  // The address in use, with the chosen port if 0 was asked for.
  const ListenAddress& address() const;

  // Serves until Stop; call it once. Handlers still running then finish, but their responses are not sent.
  void Run();

  // Makes Run return, or not start. Call from any thread, any number of times.
  void Stop();

  ~HttpServer();

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::server
