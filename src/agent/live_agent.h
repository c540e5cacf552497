// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "base/time.h"
#include "diagnose/diagnosis.h"
#include "model/batch.h"
#include "symbols/line_client.h"

namespace gpusonde::agent {

// Where a live agent's data comes to rest: the embedded store, or a server.
class Sink {
 public:
  virtual ~Sink() = default;

  // The last frame of this spool that the sink has made durable; 0 for none. Up to here frames may be
  // forgotten; later ones have to be given again after a restart.
  virtual Result<int64_t> CommittedThrough(const Id128& spool) = 0;

  // Takes the spool's frames first_sequence, first_sequence + 1, …, all or none; those that it has taken it
  // doesn't want again. `day` is the number of whole UTC days since the epoch that the data belongs to; each
  // day's data names everything that it refers to.
  virtual Status Take(const Id128& spool, int64_t day, int64_t first_sequence,
                      std::vector<model::Batch> frames) = 0;

  // Makes durable what it has taken.
  virtual Status Flush() = 0;
};

// Profiles the whole machine, always on: sources → spool → sink, once a second. What a round has spooled
// survives kill -9: it stays in the spool until the sink has made it durable, and what the sink could not
// take is tried again. Not thread-safe.
class LiveAgent {
 public:
  struct Options {
    std::string spool_folder;
    double frequency_hz = 19;
    double nvml_hz = 1;  // how often the state of GPUs is read; 0: never
    bool diagnose = true;
    // When so many frames wait for a sink that takes nothing, new data is dropped and counted; some hours'
    // worth.
    int64_t max_waiting_frames = 100'000;
    int64_t min_free_bytes = 0;  // new data is dropped and counted while the disk has less than this left
    symbols::LineClient::Options lines;  // who finds source lines
    // Called when an incident begins, changes its cause, or ends; must not keep the round waiting.
    std::function<void(const diagnose::Report&)> on_incident = [](const diagnose::Report&) {};
    // The same of a signal that begins to move as it does before steps slow.
    std::function<void(const model::Warning&)> on_warning = [](const model::Warning&) {};
    // Called when rows begin to be dropped or to wait, with the reason, and with an empty text when that is
    // over.
    std::function<void(const std::string&)> on_trouble = [](const std::string&) {};
    // Tells the diagnosis what the run before this one saw, once the sink has all of it. By default nothing.
    std::function<Status(diagnose::Diagnosis&)> recall = [](diagnose::Diagnosis&) { return Status(); };
    // How far the wall clock is from CLOCK_MONOTONIC; tests have one that steps.
    std::function<int64_t()> measure_epoch_offset = MeasureEpochOffset;
  };

  // Starts sampling, after handing over what an earlier run left in the spool.
  // Errors: those of CpuProfiler::Create and spool::Writer::Open (kUnavailable: another agent uses this
  // spool), and of the sink. `sink` must outlive the agent.
  static Result<LiveAgent> Create(const Options& options, Sink& sink);

  // Waits about a second, then gathers, spools and commits. Errors that a later round may mend (disk full,
  // sink busy) are logged once and counted, not returned.
  Status Round();

  // Stops sampling, hands over the rest and has the sink make it durable.
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
