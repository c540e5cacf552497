// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/collector.h"
#include "agent/file_server.h"
#include "base/result.h"
#include "base/time.h"
#include "diagnose/diagnosis.h"
#include "model/batch.h"
#include "model/tables/warnings.h"
#include "sources/pods/watcher.h"
#include "spool/spool.h"
#include "symbols/line_client.h"

namespace gpusonde::agent {

// What `record` and `up` have in common: a collector, a GPU monitor and a diagnosis, whose rows go to a spool
// round by round. Its owner decides what is observed, when a round takes place, and what happens to the
// spooled rows. Not thread-safe.
class Engine {
 public:
  struct Options {
    std::string spool_folder;
    spool::Writer::Options spool;
    double frequency_hz = 99;
    double nvml_hz = 10;                            // NVML readings per second; 0: none
    bool every_process = false;                     // else those that the owner lets the collector follow
    std::optional<double> overhead = std::nullopt;  // as in Collector::Options
    std::string host;                               // the machine's name in the rows; empty: its own
    std::string command;  // the profiled command as typed; empty for the whole machine
    bool diagnose = true;
    bool ends_incidents = false;                             // as in Diagnostician::Options
    std::optional<pods::Watcher::Options> pod_watcher = {};  // null: pods are not looked up
    symbols::LineClient::Options lines;                      // how source lines are found
    symbols::FileReader::Options files = ParsedHere();       // how program files are parsed
    // Whether to go on without the kernel side, which failed with this error.
    std::function<bool(const Error&)> may_lack_kernel = [](const Error&) { return false; };
    // Called when an incident begins, changes its cause or ends, and when a warning is issued; must not
    // block.
    std::function<void(const diagnose::Report&)> on_incident = [](const diagnose::Report&) {};
    std::function<void(const model::Warning&)> on_warning = [](const model::Warning&) {};
    // The offset from CLOCK_MONOTONIC to the wall clock; tests inject one that steps.
    std::function<int64_t()> measure_epoch_offset = MeasureEpochOffset;
  };

  // Starts sampling and opens the spool. Errors: those of Collector::Create and spool::Writer::Open.
  static Result<Engine> Create(Options options);

  // Starts reading NVML. Call it after forking: a child would inherit what the driver opens.
  void StartGpuMonitor();

  // Starts to ask kubelet and the container runtime, after forking too.
  void StartPodWatcher();

  // Replays the rows of the run before into the diagnosis; call it before the first round.
  void Recall(const std::function<Status(diagnose::Diagnosis&)>& earlier);

  Collector& collector();
  spool::Writer& spool();
  // Why the kernel side doesn't work; empty if it does.
  const std::string& refusal() const;
  // Added to every time in the rows.
  int64_t epoch_offset_ns() const;

  // The rows of a round: what was collected, read from NVML and diagnosed since the last one.
  Result<std::vector<model::Batch>> Gather();

  // Stops all of it and returns the last rows; `may_wait` as in Collector::Finish.
  Result<std::vector<model::Batch>> Finish(const std::function<bool()>& may_wait);

  // Writes the first `room` batches to the spool. Rows that are not written are counted, and all names are
  // repeated from now on, so that later rows don't refer to lost ones. The answer's sequences are those of
  // the first `room` batches, its lost rows those of all.
  spool::Writer::Stored Spool(std::span<const model::Batch> batches,
                              size_t room = std::numeric_limits<size_t>::max());

  // Makes the next rows repeat every name that they refer to, as a new store needs them.
  void Rewrite();

  // By how much the wall clock was set since the source began; 0 if it was at most slewed.
  int64_t MeasureClockStep() const;

  // After a step: ends the source, whose last rows go to `write`, and begins another whose times follow the
  // clock as it is now. Errors: those of Collector::Create.
  Status BeginSource(const std::function<bool()>& may_wait,
                     const std::function<void(std::vector<model::Batch>)>& write);

  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::agent
