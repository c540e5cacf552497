// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/findings/job.h"
#include "analyze/lines.h"
#include "base/order_statistics.h"

namespace gpusonde::analyze {
namespace {

// Of the steps that launched work.
int64_t MedianPart(const std::vector<StepTimes>& steps,
                   const std::function<int64_t(const StepTimes&)>& part) {
  std::vector<int64_t> values;
  for (const StepTimes& step : steps)
    if (step.gpu_ns > 0) values.push_back(part(step));
  return values.empty() ? 0 : MedianOf(std::move(values));
}

StepsLine::Slow LineOf(const SlowStep& slow, const RankSteps& steps, int64_t host_behind_ns, const Job& job) {
  const StepTimes& step = steps.steps[slow.number];
  StepsLine::Slow line{.number = static_cast<int64_t>(slow.number),
                       .begin_ns = step.start_ns - host_behind_ns,
                       .step_ns = step.step_ns,
                       .gpu_begin_ns = step.gpu_begin_ns,
                       .gpu_ns = step.gpu_ns,
                       .parts = {.compute_ns = step.compute_ns,
                                 .exposed_comm_ns = step.exposed_comm_ns,
                                 .other_ns = step.other_ns,
                                 .idle_ns = step.idle_ns()},
                       .kernels = {}};
  for (const StepKernel& kernel : slow.kernels)
    line.kernels.push_back({std::string(job.names[kernel.name]), kernel.excess_ns});
  return line;
}

}  // namespace

std::vector<StepsLine> SumSteps(const Job& job) {
  std::vector<StepsLine> lines;
  for (const JobRank& rank : job.ranks) {
    const RankSteps& steps = rank.result.steps;
    if (steps.steps.empty()) continue;
    StepsLine line{.rank = rank.number, .trace = rank.trace, .label = steps.label};
    Durations durations;
    for (const StepTimes& step : steps.steps) durations.Add(step.step_ns);
    line.durations = MakeDurationLine(steps.label, durations);
    line.typical = {
        .compute_ns = MedianPart(steps.steps, [](const StepTimes& step) { return step.compute_ns; }),
        .exposed_comm_ns =
            MedianPart(steps.steps, [](const StepTimes& step) { return step.exposed_comm_ns; }),
        .other_ns = MedianPart(steps.steps, [](const StepTimes& step) { return step.other_ns; }),
        .idle_ns = MedianPart(steps.steps, [](const StepTimes& step) { return step.idle_ns(); })};
    for (const SlowStep& slow : steps.slow)
      line.slowest.push_back(LineOf(slow, steps, rank.result.gpu_ahead_ns, job));
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace gpusonde::analyze
