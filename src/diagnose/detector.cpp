// SPDX-License-Identifier: Apache-2.0
#include "diagnose/detector.h"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "diagnose/detector_table.h"

namespace gpusonde::diagnose {
namespace {

// Slack for rounding: exceeds the error that the running sums accumulate in a year of 1 ms steps.
constexpr double kRounding = 1.00001;

}  // namespace

Detector::Verdict Detector::Ingest(const TimedStep& step) {
  if (++ingested_ <= kDetector.baseline.warm_up_steps || step.end_ns <= step.start_ns)
    return Verdict::kLearning;
  const bool is_known = Knows(step.type);
  if (open() && open_->overruns) open_->EndOverrun(step, is_known);
  if (!is_known || !thresholds_.has_value()) return IngestUnknown(step);
  const UsualLength& usual = clean_.UsualOf(step.type);
  recent_.Add(step, usual.MeanNs(step.work));
  cusums_.Add(thresholds_->AddendsOf(std::log(step.length_ns()) - usual.MedianLog(step.work),
                                     recent_.newest().ratio));
  return open() ? JudgeIncident() : JudgeClean(step);
}

// Handles a step of a type without a baseline, which can't be judged.
Detector::Verdict Detector::IngestUnknown(const TimedStep& step) {
  if (!open()) {
    Learn(step);
    return Verdict::kLearning;
  }
  if (!open_->AddUnknown(step)) return Verdict::kSlow;
  Close(std::max(open_->onset_ns, open_->unknown_since_ns));
  return Verdict::kClosed;
}

Detector::Verdict Detector::JudgeIncident() {
  open_->Add(recent_.newest());
  if (const RecentSteps::Range large = open_->FindLarge(recent_); AreSlow(large)) {
    open_->worse_since_ns = large.front().start_ns;
    return large.front().start_ns - open_->onset_ns >= kDetector.large.after_ns ? Verdict::kLarge
                                                                                : Verdict::kLateOnset;
  }
  const std::optional<int64_t> worse_since_ns = open_->WorseSince(recent_);
  if (!worse_since_ns.has_value() || !open_->worse_since_ns.has_value())
    open_->worse_since_ns = worse_since_ns;
  if (worse_since_ns.has_value()) return Verdict::kWorse;
  const std::optional<int64_t> recovered_ns = open_->RecoveredSince(recent_, *thresholds_);
  if (!recovered_ns.has_value()) return Verdict::kSlow;
  Close(*recovered_ns);
  return Verdict::kClosed;
}

Detector::Verdict Detector::JudgeClean(const TimedStep& step) {
  const bool mean_is_high = MeanIsHigh(kDetector.mean.window_ns);
  RecentSteps::Range slow = FindSlow(mean_is_high);
  if (slow.empty() && step.gpu_error && IsOutlier(recent_.newest())) slow = recent_.Since(step.start_ns);
  if (!slow.empty()) {
    Open(slow);
    return Verdict::kSlow;
  }
  // It counts whether or not it is suspected.
  outliers_.Count(step.length_ns(), IsOutlier(recent_.newest()));
  clean_.Hold(step);
  const bool is_suspect = mean_is_high || thresholds_->AreNearedBy(cusums_);
  if (is_suspect && !clean_.is_warm_up()) return Verdict::kSuspect;
  // A suspicion that has passed was none: without its steps, the longer half of those that vary in cycles
  // would be missing in the baseline, and the shorter half would become what is usual.
  while (const std::optional<TimedStep> released = clean_.Release()) Learn(*released);
  return Verdict::kClean;
}

void Detector::Learn(const TimedStep& step) {
  clean_.Learn(step);
  UpdateThresholds();
}

void Detector::UpdateThresholds() {
  if (clean_.newest().size() < kDetector.baseline.learn_steps) return;
  if (thresholds_.has_value() && !thresholds_->AreOutdated(clean_)) return;
  clean_.ForgetSlowStart();
  thresholds_.emplace(clean_);
}

void Detector::ForgetBefore(int64_t time_ns) {
  clean_.ForgetBefore(time_ns);
  // Compared with what is no longer usual.
  outliers_ = {};
  recent_ = {};
  cusums_ = {};
  thresholds_.reset();
  UpdateThresholds();
}

// Whether a slow-down by this factor over so many steps is larger than chance.
bool Detector::IsLarge(double slowdown, size_t steps) const {
  const double least =
      clean_.is_warm_up() ? kDetector.min.warm_up_slowdown.value : kDetector.min.slowdown.value;
  return slowdown > std::max(least, 1 + kDetector.mean.deviations * thresholds_->SpreadOf(steps));
}

// Whether the mean step time in the window is high. The longest step is left out: a single one is an outlier.
// The mean must also be well above the highest such mean of clean steps, since it is tested at every step.
bool Detector::MeanIsHigh(int64_t window_ns) const {
  const RecentSteps::Range steps = recent_.Within(window_ns);
  if (steps.size() < kDetector.min.steps_of_mean) return false;
  const size_t count = steps.size() - 1;
  // Without the longest step the mean is no higher than with it, which needs no look at each step. Most often
  // that is an answer.
  if (!IsLarge(QuickSumOf(steps).slowdown() * kRounding, count)) return false;
  const double mean = SumWithoutLongest(steps).slowdown();
  return IsLarge(mean, count) &&
         mean > 1 + kDetector.mean.highest_factor * (thresholds_->HighestMeanOf(count) - 1);
}

// Whether a step loses much, and hardly any clean one is as long.
bool Detector::IsOutlier(const RecentStep& step) const {
  return thresholds_->IsInTail(step.ratio) && step.lost_ns() >= kDetector.outlier.lost_ns;
}

// Whether the newest step is an outlier, and the window has more of them than clean steps have by chance.
bool Detector::OutliersAreMore(int64_t window_ns) const {
  if (!IsOutlier(recent_.newest())) return false;
  const auto outliers = std::ranges::count_if(recent_.Within(window_ns),
                                              [&](const RecentStep& step) { return IsOutlier(step); });
  return outliers_.IsExceededBy(static_cast<int>(outliers), window_ns);
}

// The steps of an incident that has begun, up to the newest step; empty if there is none.
RecentSteps::Range Detector::FindSlow(bool mean_is_high) const {
  RecentSteps::Range slow;
  if (thresholds_->AreExceededBy(cusums_) || mean_is_high)
    slow = FindSlowWithin(kDetector.mean.window_ns, kDetector.mean.max_ratio);
  // Few steps that each lose much, far apart: capped, they would lose less than the steps between them gain.
  if (slow.empty() && OutliersAreMore(kDetector.mean.window_ns))
    slow = FindSlowWithin(kDetector.mean.window_ns, HUGE_VAL);
  if (slow.empty() && MeanIsHigh(kDetector.mean.long_window_ns))
    slow = FindSlowWithin(kDetector.mean.long_window_ns, HUGE_VAL);
  return slow;
}

// The slow steps since their likeliest onset; empty if they are not slow enough. A window of which little is
// slow has a low mean, which makes steps before the onset seem slow that are so by chance. So the search is
// repeated with the mean of the steps found, as long as fewer steps are slow enough too.
RecentSteps::Range Detector::FindSlowWithin(int64_t window_ns, double max_ratio) const {
  RecentSteps::Range slow = recent_.SinceLikeliestOnset(window_ns, max_ratio);
  if (!AreSlow(slow)) return {};
  for (;;) {
    const RecentSteps::Range fewer = recent_.SinceLikeliestOnset(slow, max_ratio);
    if (fewer.size() >= slow.size() || !AreSlow(fewer)) return slow;
    slow = fewer;
  }
}

// Whether steps lose more than by chance, enough to matter, and not in a single step.
bool Detector::AreSlow(const RecentSteps::Range& steps) const {
  if (steps.size() < kDetector.min.slow_steps) return false;
  const ComparedTime time = SumOf(steps);
  if (!IsLarge(time.slowdown(), steps.size())) return false;
  const double lost_ns = time.ns - time.usual_ns;
  const double usual_step_ns = time.usual_ns / static_cast<double>(steps.size());
  if (lost_ns < std::max(kDetector.min.lost_ns.value, kDetector.min.lost_steps * usual_step_ns)) return false;
  const double largest_ns = std::ranges::max(steps | std::views::transform(&RecentStep::lost_ns));
  return lost_ns - std::max(largest_ns, 0.0) >= kDetector.min.lost_beside_longest_ns;
}

void Detector::Open(const RecentSteps::Range& slow) {
  open_ = {.onset_ns = slow.front().start_ns, .evident_ns = slow.back().end_ns, .time = SumOf(slow)};
  // They aren't clean; the newest hasn't been counted.
  for (const RecentStep& step : slow | std::views::take(slow.size() - 1))
    outliers_.Uncount(step.time.ns, IsOutlier(step));
  clean_.DropHeld();
}

void Detector::RecordEnd(int64_t recovered_ns) {
  closed_ = {.onset_ns = open_->onset_ns, .recovered_ns = recovered_ns, .slowdown = open_->time.slowdown()};
}

void Detector::Close(int64_t recovered_ns) {
  RecordEnd(recovered_ns);
  open_.reset();
  cusums_ = {};
  recent_ = {};
  clean_.DropHeld();
}

void Detector::Split(int64_t recovered_ns, int64_t since_ns) {
  RecordEnd(recovered_ns);
  MoveOnset(since_ns);
}

void Detector::MoveOnset(int64_t since_ns) {
  open_ = {.onset_ns = since_ns,
           .evident_ns = since_ns,
           .time = SumOf(recent_.Since(since_ns)),
           .unknown_steps = open_->unknown_steps,
           .unknown_since_ns = open_->unknown_since_ns};
}

void Detector::SplitOverrun(int64_t since_ns, int64_t now_ns) {
  RecordEnd(since_ns);
  OpenOverrun(since_ns, now_ns);
}

void Detector::OpenOverrun(int64_t start_ns, int64_t now_ns) {
  open_ = {.onset_ns = start_ns,
           .evident_ns = start_ns,
           .time = {static_cast<double>(now_ns - start_ns), clean_.LongestMeanNs()},
           .overruns = true};
}

bool Detector::Overruns(int64_t start_ns, int64_t now_ns) const {
  const double usual_ns = clean_.LongestMeanNs();
  const auto age_ns = static_cast<double>(now_ns - start_ns);
  return thresholds_.has_value() && usual_ns > 0 &&
         age_ns >= static_cast<double>(kDetector.overrun.min_ns.value) &&
         age_ns >= kDetector.overrun.factor * thresholds_->longest_ratio() * usual_ns;
}

Detector::Verdict Detector::Overrun(int64_t start_ns, int64_t now_ns) {
  if (open()) return Verdict::kSlow;
  if (!thresholds_.has_value()) return Verdict::kLearning;
  if (!Overruns(start_ns, now_ns)) return Verdict::kClean;
  OpenOverrun(start_ns, now_ns);
  clean_.DropHeld();
  return Verdict::kSlow;
}

}  // namespace gpusonde::diagnose
