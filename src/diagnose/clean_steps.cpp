// SPDX-License-Identifier: Apache-2.0
#include "diagnose/clean_steps.h"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace gpusonde::diagnose {

void CleanSteps::Hold(const TimedStep& clean) {
  held_.push_back(clean);
  if (held_.size() > kDetector.baseline.max) held_.pop_front();
}

std::optional<TimedStep> CleanSteps::Release() {
  if (held_.size() <= kDetector.baseline.hold) return std::nullopt;
  const TimedStep step = held_.front();
  held_.pop_front();
  return step;
}

void CleanSteps::Learn(const TimedStep& clean) {
  const double length_ns = clean.length_ns();
  learnt_ns_ += clean.end_ns - clean.start_ns;
  UsualLength& usual = types_[clean.type];
  usual.Add({clean.end_ns, length_ns, clean.work});
  if (!Knows(clean.type)) return;
  ++learnt_;
  newest_.push_back({.type = clean.type,
                     .end_ns = clean.end_ns,
                     .length_ns = length_ns,
                     .work = clean.work,
                     .log_ratio = std::log(length_ns) - usual.MedianLog(clean.work),
                     .warm_up = learnt_ns_ <= kDetector.min.warm_up_ns});
  if (newest_.size() > kDetector.baseline.max) newest_.pop_front();
}

void CleanSteps::ForgetBefore(int64_t time_ns) {
  std::erase_if(newest_, [&](const Learnt& step) { return step.end_ns < time_ns; });
  for (auto& [type, usual] : types_) usual.ForgetBefore(time_ns);
  std::erase_if(types_, [](const auto& of_type) { return of_type.second.steps() == 0; });
  for (Learnt& step : newest_)
    step.log_ratio = std::log(step.length_ns) - UsualOf(step.type).MedianLog(step.work);
}

void CleanSteps::ForgetSlowStart() {
  if (learnt_ns_ < kDetector.baseline.long_ns) return;
  const auto end = std::ranges::find(newest_, false, &Learnt::warm_up);
  double ns = 0, usual_ns = 0;
  for (const Learnt& step : std::ranges::subrange(newest_.begin(), end)) {
    ns += step.length_ns;
    usual_ns += UsualOf(step.type).MeanNs(step.work);
  }
  const auto others = static_cast<size_t>(newest_.end() - end);
  if (ns > kDetector.baseline.slow_start * usual_ns && others >= kDetector.baseline.learn_steps)
    newest_.erase(newest_.begin(), end);
}

bool CleanSteps::Knows(const Id128& type) const {
  const auto found = types_.find(type);
  return found != types_.end() && found->second.steps() >= kDetector.baseline.min_of_type;
}

double CleanSteps::LongestMeanNs() const {
  double longest_ns = 0;
  for (const auto& [type, usual] : types_)
    if (usual.steps() >= kDetector.baseline.min_of_type) longest_ns = std::max(longest_ns, usual.mean_ns());
  return longest_ns;
}

}  // namespace gpusonde::diagnose
