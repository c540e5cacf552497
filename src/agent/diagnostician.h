// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "diagnose/diagnosis.h"
#include "model/batch.h"

namespace gpusonde::agent {

// Observes the host's signals about programs that use a GPU and diagnoses when and why their steps are slow.
// Adds rows of `signals`, `steps`, `incidents`, `evidence` and `warnings` to those that others gathered. Not
// thread-safe.
class Diagnostician {
 public:
  struct Options {
    Id128 source;
    int64_t epoch_offset_ns = 0;
    bool with_kernel = true;      // else without signals that need privileges
    bool ends_incidents = false;  // with the last round: no later run goes on with them (Recall)
    // Called when an incident begins, changes its cause or ends.
    std::function<void(const diagnose::Report&)> on_incident = [](const diagnose::Report&) {};
    // Called when a warning is issued.
    std::function<void(const model::Warning&)> on_warning = [](const model::Warning&) {};
  };

  // If the kernel refuses, there are no signals, only steps; that is logged.
  explicit Diagnostician(Options options);

  // Call before the first round. `earlier` ingests the rows of the previous run. This reports no incidents
  // and writes no rows: that run did so already. An error is logged.
  void Recall(const std::function<Status(diagnose::Diagnosis&)>& earlier);

  // Processes the batches that others gathered in this round and returns the rows to write after them.
  std::vector<model::Batch> Round(std::span<const model::Batch> gathered);

  // Like Round, for the last round.
  std::vector<model::Batch> Finish(std::span<const model::Batch> gathered);

  // Times before and after a step of the wall clock can't be compared: returns rows that close open
  // incidents. Call before whatever keeps the next round waiting: that programs are not observed meanwhile
  // would look like a hang.
  std::vector<model::Batch> EndSource();

  // Sets the source of rows from now on, after EndSource, and starts the warm-up again.
  void SetSource(const Id128& source, int64_t epoch_offset_ns);

  // Makes the next batches repeat every process that they refer to, as a new store needs them.
  void Rewrite();

  Diagnostician(Diagnostician&&) noexcept;
  Diagnostician& operator=(Diagnostician&&) noexcept;
  ~Diagnostician();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::agent
