// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/live_agent.h"
#include "base/result.h"
#include "base/time.h"
#include "net/http_client.h"

namespace gpusonde::agent {

// The sink of `gpusonde agent`: sends the frames of the agent's spool to `gpusonde serve` (docs/serve.md has
// the protocol). A thread of its own reads them from the spool, a request's worth at a time, so that memory
// stays bounded, and a slow or dead server keeps nobody waiting. The spool keeps frames until the server has
// answered that they are durable. After a failure the pause doubles, up to max_pause_ns, each drawn at
// random from its upper half, so that a thousand agents don't return at the same moment.
//
// Frames that the server refuses as malformed or too large are dropped and counted. So are those of a day
// that the server's clock excludes, once this machine's own clock excludes it too: it was set since, and
// their times are wrong. Everything else (no response, full, token refused, clocks apart, a proxy's answer)
// is tried again. Where the spool is damaged, it and what follows is given up. Not thread-safe.
class Uplink : public Sink {
 public:
  struct Options {
    net::HttpUrl server;     // without path
    std::string token_file;  // read before each request, so that a token can be replaced
    net::ClientTls tls = {};
    std::string host;  // a name that spool::CheckHostName accepts
    std::string spool_folder;
    int64_t first_pause_ns = kNanosPerSecond;
    int64_t max_pause_ns = 60 * kNanosPerSecond;
    int64_t timeout_ns = 30 * kNanosPerSecond;      // for a request, and a second for each 64 KiB of it
    int64_t flush_ns = 5 * kNanosPerSecond;         // how long Flush waits
    std::function<int64_t()> epoch_now = EpochNow;  // tests have one that is set
  };

  explicit Uplink(Options options);
  ~Uplink() override;
  Uplink(const Uplink&) = delete;
  Uplink& operator=(const Uplink&) = delete;

  // As far as the server has answered in this run.
  Result<int64_t> CommittedThrough(const Id128& spool) override;
  // All that is in the spool: it is read there.
  Result<int64_t> IngestedThrough(const Id128& spool, int64_t day, int64_t last_sequence) override;
  Status Ingest(const Id128& spool, int64_t day, int64_t first_sequence,
                std::vector<model::Batch> frames) override;
  // Sends the rest at once, and waits for that at most flush_ns; what can't be sent stays in the spool.
  Status Flush() override;
  Loss TakeLoss() override;

 private:
  struct State;
  // Shared with its thread, which may outlive this while it hangs in a name look-up.
  std::shared_ptr<State> state_;
};

}  // namespace gpusonde::agent
