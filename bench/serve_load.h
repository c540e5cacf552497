// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/id128.h"
#include "model/batch.h"
#include "store/live/live_store.h"

namespace gpusonde {

// The rows of a busy machine of a cluster, second by second, as its agent writes them: 2,000 distinct stacks
// in every 10 s, of which some are new, 2 GPUs that are launched to 100 times a second each, steps, an
// incident an hour and the state of the GPUs. Deterministic. Not thread-safe.
class ServeLoad {
 public:
  explicit ServeLoad(uint64_t seed);

  // The frames of the second that begins at `start_ns` (since the epoch), which follows the one before. What
  // rows refer to comes before them, again on each day.
  std::vector<model::Batch> Second(int64_t start_ns);

  // Rows so far of each table that isn't keyed, and of distinct stacks.
  const std::map<std::string, int64_t>& rows() const { return rows_; }

 private:
  struct Stack {
    std::vector<int32_t> locations;  // root first
    Id128 id;
    bool named = false;  // in this day's file
    bool sent = false;
  };

  Stack NewStack();
  void NextWorkingSet();
  void AddNames(const std::vector<int32_t>& stacks, std::vector<model::Batch>& frames);
  void AddProcesses(int64_t start_ns, std::vector<model::Batch>& frames);
  void AddGpuWork(int64_t start_ns, std::vector<int32_t>& stacks, std::vector<model::Batch>& frames);
  void AddMetrics(int64_t start_ns, std::vector<model::Batch>& frames);
  void AddIncident(int64_t start_ns, std::vector<model::Batch>& frames);
  uint64_t Below(uint64_t bound) { return random_() % bound; }

  std::mt19937_64 random_;
  std::vector<Stack> stacks_;          // all so far
  std::vector<int32_t> working_;       // those of these 10 s
  std::vector<int32_t> drawn_;         // a stack for each sample of these 10 s
  std::vector<bool> named_locations_;  // in this day's file
  store::Day day_{};
  int64_t second_ = 0;
  int64_t correlation_ = 0;
  std::map<std::string, int64_t> rows_;
};

}  // namespace gpusonde
