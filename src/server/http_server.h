// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/access.h"
#include "server/http_message.h"
#include "server/listen_address.h"
#include "server/tls.h"

namespace gpusonde::server {

struct HttpRoutes {
  // Paths of the API (IsApiPath): may take long, runs on a worker thread.
  HttpHandler api;
  // All other paths: responses from memory, runs on the network's thread.
  HttpHandler files;
  // POST to a path of the API, on a worker thread; null: a 405.
  HttpHandler uploads;
};

// What an address has counted since its start.
struct HttpCounts {
  std::atomic<int64_t> connections = 0;
  std::atomic<int64_t> turned_away = 0;  // connections closed to make room for others, or without memory
  std::atomic<int64_t> handshakes_failed = 0;     // TLS: garbage, timeouts, no common version
  std::atomic<int64_t> certificates_refused = 0;  // TLS: the client's certificate is missing or not accepted
  std::atomic<int64_t> not_tls = 0;               // no TLS on an address that has it
  std::atomic<int64_t> denied = 0;                // answered with 401 or 403
};

// How an address is protected, and what that has counted.
struct Guard {
  std::shared_ptr<Tls> tls;        // null: no TLS
  std::shared_ptr<Access> access;  // null: everybody has access
  std::shared_ptr<HttpCounts> counts = std::make_shared<HttpCounts>();
};

struct HttpServerOptions {
  ListenAddress listen;
  Guard guard = {};
  // The scopes that GET (of the API but /metrics) and POST need where the guard has Access.
  Scope get_scope = Scope::kRead;
  Scope post_scope = Scope::kIngest;
  bool sign_in = false;  // as Gate::sign_in
  // Whether a POST is cancelled when its client hangs up, as a GET is: one that asks. One that stores isn't.
  bool posts_ask = false;
  // Bounds on the body of a POST and on all that are being received or handled; beyond the second, 503.
  size_t max_body_bytes = size_t{16} << 20;
  size_t max_bodies_bytes = size_t{64} << 20;
  // The smallest machines have two cores: one query may use one while another runs.
  int workers = 2;
  // Beyond this, the connection that has been idle longest is closed, or the new one if none is idle.
  size_t max_connections = 512;
  // For a whole request header to arrive, also for the first one of a kept connection.
  std::chrono::milliseconds header_timeout = std::chrono::seconds(30);
  // For a body, and a second more for each 64 KiB that arrive. A body that stalls counts towards
  // max_bodies_bytes until then.
  std::chrono::milliseconds body_timeout = std::chrono::seconds(30);
  // For a TLS handshake.
  std::chrono::milliseconds handshake_timeout = std::chrono::seconds(10);
};

// HTTP/1.1, with TLS if the guard has it: GET and HEAD, keep-alive, pipelining, gzip, nothing else; for
// agents and for signing in also POST, with Expect: 100-continue. Clients are untrusted, as any page in the
// browser and any user of the machine may send requests:
//
// - server/admission.h says which requests are refused;
// - a header has at most 16 KiB, an address 8 KiB; a body is only read of a POST that is admitted;
// - one thread does all network I/O without waiting for a client; slow clients run into timeouts, and the
//   number of connections, those in a TLS handshake included, and the memory of unfetched responses are
//   bounded;
// - every response forbids the page to load from, send to or be framed by any other site.
class HttpServer {
 public:
  // Listens. Errors: kUnavailable if the port is in use, kPermissionDenied, kInvalidArgument for an address
  // that isn't this machine's; each names the address and what to do.
  static Result<std::unique_ptr<HttpServer>> Create(const HttpServerOptions& options, HttpRoutes routes);

  // The address in use, with the chosen port if 0 was asked for.
  const ListenAddress& address() const;

  // "https://127.0.0.1:7171/", for a browser on this machine.
  std::string Url() const;

  // Serves until Stop; call it once. What handlers still compute then is cancelled (base/cancellation.h), and
  // their responses are not sent.
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
