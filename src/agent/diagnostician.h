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

// Watches the host's signals of programs that feed a GPU, and says when and why their steps are slow: rows of
// `signals`, `steps`, `incidents`, `evidence` and `warnings` beside those that others gathered. Not
// thread-safe.
class Diagnostician {
 public:
  struct Options {
    Id128 source;
    int64_t epoch_offset_ns = 0;
    bool with_kernel = true;  // else without the signals that need privileges
    // Called when an incident begins, changes its cause, or ends.
    std::function<void(const diagnose::Report&)> tell = [](const diagnose::Report&) {};
    // Called when a signal begins to move as it does before steps slow.
    std::function<void(const model::Warning&)> warn = [](const model::Warning&) {};
  };

  // A kernel that refuses costs the signals, not the steps; that is logged.
  explicit Diagnostician(Options options);

  // Before the first round: `earlier` tells a diagnosis what a run before this one saw. Nobody is told of
  // incidents on the way, and no rows come of it: that run wrote them. What can't be recalled is logged.
  void Recall(const std::function<Status(diagnose::Diagnosis&)>& earlier);

  // A round: what the others gathered in it. Returns the rows to be written after those.
  std::vector<model::Batch> Round(std::span<const model::Batch> gathered);

  // The last round.
  std::vector<model::Batch> Finish(std::span<const model::Batch> gathered);

  // Rows from now on are this source's. What was learnt lies on the other side of a step of the clock: open
  // incidents end here, in the rows returned, and steps are learnt anew.
  std::vector<model::Batch> BelongTo(const Id128& source, int64_t epoch_offset_ns);

  // The next batches repeat every process that they refer to, as a new store needs them.
  void Rewrite();

  Diagnostician(Diagnostician&&) noexcept;
  Diagnostician& operator=(Diagnostician&&) noexcept;
  ~Diagnostician();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::agent
