// SPDX-License-Identifier: Apache-2.0
#include "diagnose/usual_length.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/order_statistics.h"
#include "diagnose/detector_table.h"

namespace gpusonde::diagnose {
namespace {

double LineNs(double fixed_ns, double per_work_ns, int64_t work) {
  return fixed_ns + per_work_ns * static_cast<double>(std::max<int64_t>(work, 1));
}

// The deviation of log lengths over the line's from their median.
double DeviationFrom(std::span<const UsualLength::Step> steps, double fixed_ns, double per_work_ns) {
  std::vector<double> logs;
  logs.reserve(steps.size());
  for (const auto& step : steps)
    logs.push_back(std::log(step.length_ns / LineNs(fixed_ns, per_work_ns, step.work)));
  const double median = MedianOf(logs);
  for (double& log : logs) log = std::abs(log - median);
  return MedianOf(std::move(logs));
}

UsualLength::Step MedianStep(std::span<const UsualLength::Step> steps) {
  std::vector<double> lengths, works;
  for (const auto& step : steps) {
    lengths.push_back(step.length_ns);
    works.push_back(static_cast<double>(step.work));
  }
  return {.length_ns = MedianOf(std::move(lengths)),
          .work = static_cast<int64_t>(MedianOf(std::move(works)))};
}

}  // namespace

void UsualLength::Add(const Step& clean) {
  clean_.push_back(clean);
  while (clean_.size() > kDetector.baseline.max_of_type ||
         (clean_.size() > kDetector.baseline.of_type &&
          clean_.front().end_ns < clean.end_ns - kDetector.baseline.of_type_ns))
    clean_.pop_front();
  if (++since_summed_up_ < clean_.size() / kDetector.baseline.sum_up_share) return;
  since_summed_up_ = 0;
  SumUp();
}

void UsualLength::ForgetBefore(int64_t time_ns) {
  std::erase_if(clean_, [&](const Step& step) { return step.end_ns < time_ns; });
  since_summed_up_ = 0;
  if (!clean_.empty()) SumUp();
}

double UsualLength::ByWork(int64_t work) const {
  return per_work_ns_ > 0 ? LineNs(fixed_ns_, per_work_ns_, work) : 1;
}

double UsualLength::MedianLog(int64_t work) const { return median_log_ + std::log(ByWork(work)); }

void UsualLength::SumUp() {
  FitLine();
  std::vector<double> logs;
  logs.reserve(clean_.size());
  double ns = 0, ratios = 0;
  for (const Step& step : clean_) {
    const double ratio = step.length_ns / ByWork(step.work);
    ns += step.length_ns;
    ratios += ratio;
    logs.push_back(std::log(ratio));
  }
  mean_ns_ = ns / static_cast<double>(clean_.size());
  mean_ratio_ = ratios / static_cast<double>(clean_.size());
  median_log_ = MedianOf(std::move(logs));
}

void UsualLength::FitLine() {
  fixed_ns_ = per_work_ns_ = 0;
  if (clean_.size() < kDetector.by_work.steps) return;
  std::vector<Step> steps(clean_.begin(), clean_.end());
  std::ranges::sort(steps, {}, &Step::work);
  const size_t third = steps.size() / 3;
  const Step small = MedianStep(std::span(steps).first(third));
  const Step large = MedianStep(std::span(steps).last(third));
  if (static_cast<double>(large.work) <= kDetector.by_work.min_range * static_cast<double>(small.work))
    return;
  const double per_work_ns =
      (large.length_ns - small.length_ns) / static_cast<double>(large.work - small.work);
  if (per_work_ns <= 0) return;
  const double fixed_ns = std::max(0.0, small.length_ns - per_work_ns * static_cast<double>(small.work));
  if (DeviationFrom(steps, fixed_ns, per_work_ns) >
      kDetector.by_work.max_deviation * DeviationFrom(steps, 1, 0))
    return;
  fixed_ns_ = fixed_ns;
  per_work_ns_ = per_work_ns;
}

}  // namespace gpusonde::diagnose
