// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "diagnose/diagnosis.h"
#include "net/http_client.h"

namespace gpusonde::agent {

// POSTs incidents to an HTTP server when one begins, changes its cause or ends, and warnings;
// docs/diagnose.md describes the body. Sends from a thread of its own, so that a slow or dead server doesn't
// block the caller. Not thread-safe.
class Webhook {
 public:
  struct Counts {
    int64_t delivered = 0;  // answered with 2xx
    int64_t retried = 0;    // attempts beyond the first
    int64_t given_up = 0;   // after kAttempts, or because too many waited
  };

  struct Options {
    net::HttpUrl url;
    std::string machine;  // its name in the body
    // The pause before the second attempt; each later pause is four times as long.
    int64_t pause_ns = 1'000'000'000;
  };
  static constexpr int kAttempts = 4;
  // The most posts that may wait; then the oldest are dropped.
  static constexpr size_t kMaxWaiting = 256;

  explicit Webhook(Options options);
  // Waiting posts get two more seconds.
  ~Webhook();
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  // Returns at once.
  void Post(const diagnose::Report& report);
  void Post(const model::Warning& warning);

  // Waits until all posts are sent or for `max_ns`; returns whether all were sent.
  bool Flush(int64_t max_ns);
  Counts counts() const;

 private:
  void Post(std::string body);
  struct State;
  std::shared_ptr<State>
      state_;  // shared with its thread, which may outlive this while it hangs in a name look-up
};

}  // namespace gpusonde::agent
