// SPDX-License-Identifier: Apache-2.0
#include "analyze/steps/step_times.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace gpusonde::analyze {
namespace {

constexpr size_t kMinTypical = 3;  // of fewer steps, none is typical

}  // namespace

StepFollower::StepFollower(const Steps& steps, int64_t gpu_ahead_ns) {
  result_.label = steps.label;
  result_.left_out = steps.left_out;
  for (size_t i = 0; i < steps.ranges.size(); ++i) {
    const TimeRange& range = steps.ranges[i];
    const int64_t until_ns = i + 1 < steps.ranges.size() ? steps.ranges[i + 1].from_ns : range.to_ns;
    result_.steps.push_back({.start_ns = range.from_ns + gpu_ahead_ns, .step_ns = until_ns - range.from_ns});
    end_ns_ = range.to_ns + gpu_ahead_ns;
  }
  if (!result_.steps.empty()) next_ns_ = result_.steps.front().start_ns;
  ChooseSlow();
}

void StepFollower::ChooseSlow() {
  if (result_.steps.size() < kMinTypical) return;
  std::vector<size_t> longest(result_.steps.size());
  std::iota(longest.begin(), longest.end(), size_t{0});
  std::ranges::stable_sort(longest, std::greater(), [this](size_t i) { return result_.steps[i].step_ns; });
  const size_t middle = longest.size() / 2;
  const auto median_ns = static_cast<double>(result_.steps[longest[middle]].step_ns);
  for (size_t i = 0; i < std::min(longest.size(), RankSteps::kMaxSlow); ++i) {
    if (static_cast<double>(result_.steps[longest[i]].step_ns) < kSlowStep * median_ns) break;
    result_.slow.push_back({.number = longest[i], .kernels = {}});
    in_slow_ns_[longest[i]];
  }
}

void StepFollower::Begin(size_t step, int64_t time_ns, const RankTimeline& before) {
  step_ = step;
  next_ns_ = step + 1 < result_.steps.size() ? result_.steps[step + 1].start_ns
                                             : std::numeric_limits<int64_t>::max();
  const auto slow = in_slow_ns_.find(step);
  in_this_ns_ = slow == in_slow_ns_.end() ? nullptr : &slow->second;
  result_.steps[step].gpu_begin_ns = time_ns;
  at_begin_ = before.PartsUntil(time_ns);
}

void StepFollower::End(int64_t time_ns, const RankTimeline& timeline) {
  StepTimes& step = result_.steps[*step_];
  const TimelineParts parts = timeline.PartsUntil(time_ns);
  step.gpu_ns = time_ns - step.gpu_begin_ns;
  step.compute_ns = parts.compute_ns - at_begin_.compute_ns;
  step.exposed_comm_ns = parts.kernels_ns - at_begin_.kernels_ns - step.compute_ns;
  step.other_ns = parts.busy_ns - at_begin_.busy_ns - step.compute_ns - step.exposed_comm_ns;
}

void StepFollower::AddToStep(const LaunchedRecord& record, const RankTimeline& before) {
  const GpuRecord& event = record.gpu;
  // Work without a known launch, and what another stream still has of an earlier step, belong to the time of
  // the current one.
  if (record.has_call != 0 && record.call_start_ns >= next_ns_ && record.call_start_ns < end_ns_) {
    const auto after =
        std::ranges::upper_bound(result_.steps, record.call_start_ns, {}, &StepTimes::start_ns);
    if (step_.has_value()) End(event.start_ns, before);
    Begin(static_cast<size_t>(after - result_.steps.begin()) - 1, event.start_ns, before);
  }
  if (!step_.has_value() || event.work != importers::GpuWork::kKernel) return;
  ++result_.steps[*step_].kernels;
  const int64_t duration_ns = event.end_ns - event.start_ns;
  if (event.name >= in_all_steps_ns_.size()) in_all_steps_ns_.resize(size_t{event.name} + 1);
  in_all_steps_ns_[event.name] += duration_ns;
  if (in_this_ns_ != nullptr) (*in_this_ns_)[event.name] += duration_ns;
}

RankSteps StepFollower::Finish(const RankTimeline& timeline) {
  if (step_.has_value()) End(timeline.covered_to(), timeline);
  const auto count = static_cast<int64_t>(result_.steps.size());
  for (SlowStep& slow : result_.slow) {
    for (const auto& [name, duration_ns] : in_slow_ns_.at(slow.number))
      if (const int64_t excess_ns = duration_ns - in_all_steps_ns_[name] / count; excess_ns > 0)
        slow.kernels.push_back({name, excess_ns});
    std::ranges::stable_sort(slow.kernels, std::greater(), &StepKernel::excess_ns);
    if (slow.kernels.size() > RankSteps::kMaxKernels) slow.kernels.resize(RankSteps::kMaxKernels);
  }
  return std::move(result_);
}

}  // namespace gpusonde::analyze
