// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "exporters/prometheus/live_totals.h"
#include "net/http_client.h"

namespace gpusonde::otlp {

// A request of OpenTelemetry's protocol: protobuf, gzip'd.
struct Request {
  std::string body;
  int64_t items = 0;  // data points of metrics, or profiles
};

// Sends one signal to a receiver of OTLP/HTTP (https://opentelemetry.io/docs/specs/otlp/#otlphttp) from a
// thread of its own, which renders a request every interval. Requests wait in memory while the receiver
// doesn't respond, or asks for later (429, 502, 503, 504); the pauses are those of net::Backoff, or what
// Retry-After asks for and up to a quarter more. Other answers than 2xx drop the request, as the protocol
// says. When too many wait, the oldest is dropped. Whatever isn't accepted is counted. Not thread-safe.
class Push {
 public:
  using Counts = exporters::prometheus::LiveTotals::Pushed;

  struct Options {
    std::string signal;             // for messages: "metrics"
    net::HttpUrl url;               // of the signal
    std::string headers_file = {};  // headers_file.h; read before each request; empty: none
    net::ClientTls tls = {};
    int64_t interval_ns = 60 * kNanosPerSecond;
    // What is new since the last call, oldest first; `last` before the end. The thread calls it; after an
    // error it is called again after the next interval.
    std::function<Result<std::vector<Request>>(bool last)> render;
    // Called whenever the counts have changed, by one thread at a time; must not call this object.
    std::function<void(const Counts&)> on_counts = [](const Counts&) {};
    size_t max_waiting = 256;  // requests
    size_t max_waiting_bytes = size_t{32} << 20;
    int64_t first_pause_ns = kNanosPerSecond;
    int64_t max_pause_ns = 60 * kNanosPerSecond;
    int64_t timeout_ns = 10 * kNanosPerSecond;  // for a whole request
    int64_t finish_ns = 5 * kNanosPerSecond;    // how long what waits at the end has
  };

  explicit Push(Options options);
  // Waits until `render` and `on_counts` have returned.
  ~Push();
  Push(const Push&) = delete;
  Push& operator=(const Push&) = delete;

  // Begins to render a last time and to send what waits. For several signals that end together: while one is
  // waited for, the others go on.
  void BeginFinish();
  // The same, and waits until finish_ns after the begin at most; the rest is dropped, counted and logged.
  void Finish();

  Counts counts() const;

 private:
  struct State;
  // Shared with its thread, which may outlive this while it hangs in a name look-up.
  std::shared_ptr<State> state_;
};

}  // namespace gpusonde::otlp
