// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/file_server.h"
#include "base/id128.h"
#include "base/result.h"
#include "base/time.h"
#include "diagnose/diagnosis.h"
#include "model/batch.h"
#include "sources/pods/watcher.h"
#include "symbols/line_client.h"

namespace gpusonde::agent {

// The destination of a live agent's data: the embedded store or a server.
class Sink {
 public:
  virtual ~Sink() = default;

  // The last frame of this spool that the sink has made durable; 0 for none. The spool may delete frames up
  // to here; later ones have to be sent again after a restart.
  virtual Result<int64_t> CommittedThrough(const Id128& spool) = 0;

  // Called once, before any Ingest: the last frame that need not be given to Ingest, of `last_sequence` that
  // the spool has. By default those that are durable; a sink that reads the spool itself needs none. `day` as
  // for Ingest.
  virtual Result<int64_t> IngestedThrough(const Id128& spool, [[maybe_unused]] int64_t day,
                                          [[maybe_unused]] int64_t last_sequence) {
    return CommittedThrough(spool);
  }

  // Ingests the spool's frames first_sequence, first_sequence + 1, …, all or none; they are not sent again in
  // this run. `day` is the UTC day of the data, in whole days since the epoch; each day's data includes all
  // names that it refers to.
  virtual Status Ingest(const Id128& spool, int64_t day, int64_t first_sequence,
                        std::vector<model::Batch> frames) = 0;

  // Makes everything that it has ingested durable.
  virtual Status Flush() = 0;

  // What the sink had to give up since the last call.
  struct Loss {
    int64_t rows = 0;
    bool names = false;  // rows refer to names that the sink doesn't have: they must be repeated
    // The sink has frames up to this one, more than there are: it would take new ones for those. 0: none.
    int64_t skip_to = 0;
    bool spool = false;  // the spool is damaged: the sink has given up the frames that it couldn't read
  };
  virtual Loss TakeLoss() { return {}; }
};

// The policy of `up` and `agent` over an Engine: profiles the whole machine continuously. Once a second, data
// moves from the sources to the spool and from there to the sink. Spooled data survives kill -9: it stays in
// the spool until the sink has made it durable, and is sent again after the sink refused it. Not thread-safe.
class LiveAgent {
 public:
  struct Options {
    std::string spool_folder;
    // Small, so that segments are soon deleted after the sink has ingested them.
    int64_t segment_bytes = int64_t{8} << 20;
    std::string host;  // the machine's name in the rows; empty: its own
    double frequency_hz = 19;
    double nvml_hz = 1;       // NVML readings per second; 0: none
    double overhead = 0.005;  // the share of its time that profiling a program's GPU work may cost it
    bool diagnose = true;
    std::optional<pods::Watcher::Options> pod_watcher = {};  // null: pods are not looked up
    // When this many frames (some hours' worth) wait for a sink that refuses them, new data is dropped and
    // counted. Not used where max_spool_bytes bounds them.
    int64_t max_waiting_frames = 100'000;
    int64_t max_spool_bytes = 0;  // the same for the bytes of the spool; 0: no limit
    int64_t min_free_bytes = 0;   // new data is dropped and counted while the disk has less than this left
    symbols::LineClient::Options lines;                 // how source lines are found
    symbols::FileReader::Options files = ParsedHere();  // how program files are parsed
    // Called when an incident begins, changes its cause or ends; must not block.
    std::function<void(const diagnose::Report&)> on_incident = [](const diagnose::Report&) {};
    // Called when a warning is issued; must not block.
    std::function<void(const model::Warning&)> on_warning = [](const model::Warning&) {};
    // Called with the reason when rows begin to be dropped or to wait, and with an empty text when that is
    // over.
    std::function<void(const std::string&)> on_problem = [](const std::string&) {};
    // Called with the rows of each round before they are spooled, so also with those that are then dropped.
    std::function<void(std::span<const model::Batch>)> on_rows = [](std::span<const model::Batch>) {};
    // Replays the previous run's rows into the diagnosis, once the sink has all of them. Null: no run does,
    // and open incidents end with the run.
    std::function<Status(diagnose::Diagnosis&)> recall = nullptr;
    // The offset from CLOCK_MONOTONIC to the wall clock; tests inject one that steps.
    std::function<int64_t()> measure_epoch_offset = MeasureEpochOffset;
  };

  // Sends what an earlier run left in the spool to the sink, then starts sampling. What the sink refuses now
  // is sent later. A damaged spool is set aside (spool::SetAsideIfDamaged). Errors: those of Engine::Create
  // (kUnavailable: another agent uses this spool) and of Sink::CommittedThrough and IngestedThrough. `sink`
  // must outlive the agent.
  static Result<LiveAgent> Create(const Options& options, Sink& sink);

  // Waits about a second, then gathers, spools and commits. Errors that may go away (disk full, sink busy)
  // are logged once and counted, not returned. Errors: those of the sources.
  Status Round();

  // Stops sampling, sends the rest to the sink and makes it durable.
  Status Finish();

  LiveAgent(LiveAgent&&) noexcept;
  LiveAgent& operator=(LiveAgent&&) noexcept;
  ~LiveAgent();

 private:
  struct State;
  explicit LiveAgent(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::agent
