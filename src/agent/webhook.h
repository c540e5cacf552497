// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agent/http_post.h"
#include "diagnose/diagnosis.h"

namespace gpusonde::agent {

// Tells an HTTP server of incidents, a POST when one begins, changes its cause, or ends, and of warnings,
// with a body as docs/diagnose.md has it. A thread of its own does it, so that nobody waits for a server that
// is slow or gone. Not thread-safe.
class Webhook {
 public:
  struct Counts {
    int64_t delivered = 0;  // answered with 2xx
    int64_t retried = 0;    // attempts beyond the first
    int64_t given_up = 0;   // after kAttempts, or because too many waited
  };

  struct Options {
    HttpUrl url;
    std::string machine;  // its name, as the body says it
    // Before the second attempt; each later one waits four times as long.
    int64_t pause_ns = 1'000'000'000;
  };
  static constexpr int kAttempts = 4;
  // So many may wait; older ones make room.
  static constexpr size_t kMostWaiting = 256;

  explicit Webhook(Options options);
  // What waits has two more seconds.
  ~Webhook();
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  // Returns at once.
  void Post(const diagnose::Report& report);
  void Post(const model::Warning& warning);

  // Until nothing waits, or so long; whether nothing does.
  bool Flush(int64_t most_ns);
  Counts counts() const;

 private:
  void Post(std::string body);
  struct State;
  std::shared_ptr<State> state_;  // its thread's too, which is left behind where it hangs in a name server
};

}  // namespace gpusonde::agent
