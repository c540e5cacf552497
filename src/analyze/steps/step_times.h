// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyze/records.h"
#include "analyze/steps/step_candidates.h"
#include "analyze/timeline/rank_timeline.h"

namespace gpusonde::analyze {

// What a rank's device did in a step. A step's time on the GPU begins with the first work that it launched,
// and ends where that of the next step begins. By the GPU's clock.
struct StepTimes {
  int64_t start_ns = 0;      // of its range on the host
  int64_t step_ns = 0;       // from there to the start of the next, of the last one to its end
  int64_t gpu_begin_ns = 0;  // 0 if it launched nothing
  int64_t gpu_ns = 0;
  int64_t compute_ns = 0;
  int64_t exposed_comm_ns = 0;  // communication without computation
  int64_t other_ns = 0;         // copies, sets and whole graphs without kernels
  int64_t kernels = 0;

  int64_t idle_ns() const { return gpu_ns - compute_ns - exposed_comm_ns - other_ns; }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(start_ns);
    archive(step_ns);
    archive(gpu_begin_ns);
    archive(gpu_ns);
    archive(compute_ns);
    archive(exposed_comm_ns);
    archive(other_ns);
    archive(kernels);
  }
};

// A kernel that took longer in a step than on average of all steps.
struct StepKernel {
  uint32_t name = 0;
  int64_t excess_ns = 0;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(name);
    archive(excess_ns);
  }
};

// A step is slow if it takes this many times as long as the median.
inline constexpr double kSlowStep = 1.2;

// A step that took longer than others.
struct SlowStep {
  uint64_t number = 0;  // in RankSteps::steps
  std::vector<StepKernel> kernels;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(number);
    archive(kernels);
  }
};

struct RankSteps {
  static constexpr size_t kMaxSlow = 5;
  static constexpr size_t kMaxKernels = 3;  // of a slow step

  std::string label;
  std::vector<StepTimes> steps;
  std::vector<SlowStep> slow;  // the longest first
  int64_t left_out = 0;        // Steps::left_out

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(label);
    archive(steps);
    archive(slow);
    archive(left_out);
    archive.Require(left_out >= 0);
    for (const SlowStep& one : slow) archive.Require(one.number < steps.size());
  }
};

// Divides a rank's timeline by steps.
class StepFollower {
 public:
  // `steps` by the host's clock; `gpu_ahead_ns` is added. `steps` must outlive it.
  StepFollower(const Steps& steps, int64_t gpu_ahead_ns);

  // An event, by start time, and the timeline of those before.
  void Add(const LaunchedRecord& record, const RankTimeline& before) {
    if (!result_.steps.empty()) AddToStep(record, before);
  }
  RankSteps Finish(const RankTimeline& timeline);

 private:
  void AddToStep(const LaunchedRecord& record, const RankTimeline& before);
  void Begin(size_t step, int64_t time_ns, const RankTimeline& before);
  void End(int64_t time_ns, const RankTimeline& timeline);
  void ChooseSlow();

  RankSteps result_;
  using KernelTimes = std::map<uint32_t, int64_t>;  // by name

  int64_t end_ns_ = 0;   // of the last step
  int64_t next_ns_ = 0;  // when the step after the current one starts
  std::optional<size_t> step_;
  TimelineParts at_begin_;
  std::vector<int64_t> in_all_steps_ns_;        // of kernels, by name
  std::map<uint64_t, KernelTimes> in_slow_ns_;  // by step
  KernelTimes* in_this_ns_ = nullptr;           // of the current step, if it is slow
};

}  // namespace gpusonde::analyze
