// SPDX-License-Identifier: Apache-2.0
#include "diagnose/detector.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <ranges>
#include <span>
#include <utility>

#include "base/time.h"

namespace gpusonde::diagnose {
namespace {

// The first steps of a program compile, allocate and warm caches.
constexpr int64_t kWarmUp = 3;
// Clean steps that are remembered: quick ones are many, and wander over seconds.
constexpr size_t kBaseline = 1024;
constexpr size_t kTypeBaseline = 64, kMostOfType = 1024;
constexpr int64_t kTypeBaselineNs = 10 * kNanosPerSecond;
constexpr size_t kSumUpShare = 16;  // a type is summed up when it has grown by a sixteenth
constexpr size_t kLeastOfType = 4;
constexpr size_t kHold = 12;  // steps until a clean one is learnt from: what precedes an onset isn't clean
// Limits are set when so many steps are new, and a sixteenth of all.
constexpr size_t kRefresh = 32, kRefreshShare = 16;

// Below this nobody acts, and clocks and caches wander.
constexpr double kLeastSlowdown = 1.1;
// Of a program of whose clean steps less is known: it may be finding its pace.
constexpr double kEarlySlowdown = 1.3;
constexpr int64_t kEarlyNs = 3 * kNanosPerSecond;
constexpr double kLeastLostSteps = 1.2;  // three steps at half the speed lose one and a half
// Of quick steps: a hypervisor or an interrupt takes less at any time; also without the longest step.
constexpr double kLeastLostNs = 70e6, kLeastLostBesideNs = 40e6;
constexpr double kLeastScale = 0.01;
constexpr double kMostRatio = 3;  // of one step, where the onset is looked for

// Deviations in units of the scale. The reference values are half of the shift that each is best at.
constexpr double kSmallReference = 0.75, kSmallMost = 4;
constexpr double kLargeReference = 3, kLargeMost = 8;  // one step alone reaches no limit
// Of the tail: what is beyond it by a little, and the share of steps that may be for ever.
constexpr double kTailQuantile = 0.99, kBeyondTail = 1.1, kTailReference = 0.2, kLeastTail = 2;
constexpr size_t kLeastRecent = 20;
constexpr int64_t kMeanWindowNs = kNanosPerSecond;
// Likewise of far longer steps that come seldom: a GPU that stops twice for a moment.
constexpr int64_t kSeldomWindowNs = 5 * kNanosPerSecond;

// An unfinished step is called slow when it has taken so many times its usual time, and as many times the
// longest clean one's.
constexpr double kOverrun = 3;
constexpr int64_t kLeastOverrunNs = 200 * kNanosPerMilli;

// An incident whose excess is so many times what it was, and at least this much, is another one.
constexpr double kWorse = 3;
constexpr double kWorseRatio = 1.4;

// Pulses of the same disturbance are one incident.
constexpr int64_t kCalmNs = 3 * kNanosPerSecond;
constexpr size_t kCalmSteps = 5;
// Of the steps of that time may be slow: so many, or so many times what is clean.
constexpr double kCalmShare = 0.1, kCalmTimes = 1.5;
constexpr double kCalmExcess = 0.25;  // of the incident's may be left
// The program does something else by now: of steps like those that were slow there are no more.
constexpr int64_t kOtherNs = 10 * kNanosPerSecond;
constexpr int kOtherSteps = 10;
constexpr int kRuns = 200;
constexpr int kRunSteps = 300;
constexpr size_t kBlock = 8;
constexpr size_t kLeastBlocks = 8;  // that a spread is told from
constexpr size_t kDoublings = 3;    // that tell how it shrinks with more steps
constexpr double kDeviations = 4;
constexpr double kTimesHighest = 1.75;
constexpr double kQuantile = 0.98;

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Sorts them.
double QuantileOf(std::vector<double>& values, double quantile) {
  std::ranges::sort(values);
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(quantile * static_cast<double>(values.size())))];
}

// Standard deviation of the means of `length` values that follow each other.
double SpreadOfMeans(std::span<const double> values, size_t length) {
  double sum = 0, squares = 0;
  const size_t blocks = values.size() / length;
  for (size_t block = 0; block < blocks; ++block) {
    double mean = 0;
    for (const double value : values.subspan(block * length, length)) mean += value;
    mean /= static_cast<double>(length);
    sum += mean;
    squares += mean * mean;
  }
  const auto count = static_cast<double>(blocks);
  return std::sqrt(std::max(0.0, squares - sum * sum / count) / (count - 1));
}

// The highest of them, wherever the first value is.
double HighestMean(std::span<const double> values, size_t length) {
  double sum = 0, most = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    sum += values[i];
    if (i >= length) sum -= values[i - length];
    if (i + 1 >= length) most = std::max(most, sum);
  }
  return most / static_cast<double>(length);
}

// What a deviation adds to a sum that never falls below 0.
double Addend(double z, double reference, double most) { return std::clamp(z, -most, most) - reference; }
double Grow(double cusum, double addend) { return std::max(0.0, cusum + addend); }

}  // namespace

bool Detector::Knows(const Id128& type) const {
  const auto found = types_.find(type);
  return found != types_.end() && found->second.clean.size() >= kLeastOfType;
}

double Detector::UsualNs(const Id128& type) const {
  const auto found = types_.find(type);
  return found == types_.end() ? 0 : found->second.mean_ns;
}

double Detector::slowdown() const { return usual_ns_ > 0 ? slow_ns_ / usual_ns_ : 1; }

double Detector::Excess() const { return std::max(slowdown() - 1, kLeastSlowdown - 1); }

// Of a step within an incident: nearer to the incident's mean than to the usual.
bool Detector::IsSlow(const Recent& step) const { return step.ratio > 1 + Excess() / 2; }

double Detector::TailAddend(double ratio) const { return (ratio > tail_ratio_ ? 1 : 0) - kTailReference; }

double Detector::CleanShareAbove(double ratio) const {
  const auto above = clean_ratios_.end() - std::ranges::upper_bound(clean_ratios_, ratio);
  return static_cast<double>(above) / static_cast<double>(std::max<size_t>(clean_ratios_.size(), 1));
}

int64_t Detector::slow_until_ns() const {
  for (const Recent& step : recent_ | std::views::reverse) {
    if (step.start_ns < onset_ns_) break;
    if (IsSlow(step)) return step.end_ns;
  }
  return INT64_MAX;
}

Detector::Verdict Detector::Take(const Step& step) {
  ++seen_;
  if (seen_ <= kWarmUp || step.end_ns <= step.start_ns) return Verdict::kLearning;
  if (!Knows(step.type) || !HasBaseline()) return TakeOther(step);
  others_ = 0;
  const Type& type = types_[step.type];
  const auto length_ns = static_cast<double>(step.end_ns - step.start_ns);
  const double z = (std::log(length_ns) - type.median_log) / scale_;
  recent_.push_back({step.start_ns, step.end_ns, length_ns / type.mean_ns, type.mean_ns, z});
  while (recent_.size() > kLeastRecent && recent_.front().end_ns < step.end_ns - 2 * kCalmNs)
    recent_.pop_front();

  small_ = Grow(small_, Addend(z, kSmallReference, kSmallMost));
  large_ = Grow(large_, Addend(z, kLargeReference, kLargeMost));
  tail_ = Grow(tail_, TailAddend(recent_.back().ratio));

  if (open_) {
    slow_ns_ += length_ns;
    usual_ns_ += type.mean_ns;
    if (IsWorse()) return Verdict::kWorse;
    if (!Recovered()) return Verdict::kSlow;
    Close();
    return Verdict::kClosed;
  }
  const bool mean_is_high = MeanIsHigh(kMeanWindowNs);
  if (small_ > small_limit_ || large_ > large_limit_ || tail_ > tail_limit_ || mean_is_high)
    Open(LikeliestOnset(kMeanWindowNs, kMostRatio));
  if (!open_ && MeanIsHigh(kSeldomWindowNs)) Open(LikeliestOnset(kSeldomWindowNs, HUGE_VAL));
  if (open_) return Verdict::kSlow;
  if ((Suspicious() || mean_is_high) && learnt_ns_ >= kEarlyNs) return Verdict::kSuspect;
  held_.push_back(step);
  if (held_.size() > kHold) {
    Learn(held_.front());
    held_.pop_front();
  }
  return Verdict::kClean;
}

// Of a type that nothing is known of, so nobody can say whether it is slow.
Detector::Verdict Detector::TakeOther(const Step& step) {
  if (!open_) {
    Learn(step);
    return Verdict::kLearning;
  }
  if (others_++ == 0) others_since_ns_ = step.start_ns;
  if (others_ < kOtherSteps || step.end_ns - others_since_ns_ < kOtherNs) return Verdict::kSlow;
  recovered_ns_ = std::max(onset_ns_, others_since_ns_);
  Close();
  return Verdict::kClosed;
}

void Detector::Close() {
  open_ = false;
  small_ = large_ = tail_ = 0;
  others_ = 0;
  recent_.clear();
  held_.clear();
}

void Detector::Learn(const Step& step) {
  const auto length_ns = static_cast<double>(step.end_ns - step.start_ns);
  learnt_ns_ += step.end_ns - step.start_ns;
  Type& type = types_[step.type];
  type.Add(step.end_ns, std::log(length_ns));
  if (type.clean.size() < kLeastOfType) return;
  learnt_.push_back({step.type, length_ns, std::log(length_ns) - type.median_log});
  if (learnt_.size() > kBaseline) learnt_.pop_front();
  if (learnt_.size() < kLearnSteps) return;
  const bool is_new = ++learnt_since_limits_ >= std::max(kRefresh, learnt_.size() / kRefreshShare);
  if (HasBaseline() && !is_new) return;
  learnt_since_limits_ = 0;
  SetLimits();
}

void Detector::Type::Add(int64_t end_ns, double log_ns) {
  clean.push_back({end_ns, log_ns});
  while (clean.size() > kMostOfType ||
         (clean.size() > kTypeBaseline && clean.front().end_ns < end_ns - kTypeBaselineNs))
    clean.pop_front();
  if (++since_summed_up < clean.size() / kSumUpShare) return;
  since_summed_up = 0;
  std::vector<double> logs;
  double sum_ns = 0;
  for (const auto& each : clean) sum_ns += std::exp(logs.emplace_back(each.log_ns));
  mean_ns = sum_ns / static_cast<double>(clean.size());
  median_log = MedianOf(std::move(logs));
}

void Detector::SetLimits() {
  std::vector<double> clean, deviations;
  for (const Learnt& step : learnt_) {
    clean.push_back(step.residual);
    deviations.push_back(std::abs(step.residual));
  }
  scale_ = std::max(1.4826 * MedianOf(deviations), kLeastScale);  // of a normal distribution its deviation

  std::vector<double> ratios;
  ratios.reserve(learnt_.size());
  for (const Learnt& step : learnt_) ratios.push_back(step.length_ns / types_[step.type].mean_ns);
  clean_ratios_ = ratios;
  tail_ratio_ = std::max(kBeyondTail * QuantileOf(clean_ratios_, kTailQuantile), kLeastSlowdown);

  struct Addends {
    double small, large, tail;
  };
  std::vector<Addends> addends;
  addends.reserve(clean.size());
  for (size_t i = 0; i < clean.size(); ++i)
    addends.push_back({Addend(clean[i] / scale_, kSmallReference, kSmallMost),
                       Addend(clean[i] / scale_, kLargeReference, kLargeMost), TailAddend(ratios[i])});
  std::mt19937 random(1);
  std::vector<double> smalls, larges, tails;
  for (int run = 0; run < kRuns; ++run) {
    double small = 0, large = 0, tail = 0, most_small = 0, most_large = 0, most_tail = 0;
    for (int at = 0; at < kRunSteps; at += kBlock) {
      size_t at_step = random() % addends.size();
      for (size_t i = 0; i < kBlock; ++i) {
        small = Grow(small, addends[at_step].small);
        large = Grow(large, addends[at_step].large);
        tail = Grow(tail, addends[at_step].tail);
        most_small = std::max(most_small, small);
        most_large = std::max(most_large, large);
        most_tail = std::max(most_tail, tail);
        if (++at_step == addends.size()) at_step = 0;
      }
    }
    smalls.push_back(most_small);
    larges.push_back(most_large);
    tails.push_back(most_tail);
  }
  // Few clean steps tell little of the tails: a floor, lower as there are more.
  const double caution = 1 + 20.0 / static_cast<double>(clean.size());
  small_limit_ = std::max(QuantileOf(smalls, kQuantile), 6.0) * caution;
  large_limit_ = std::max(QuantileOf(larges, kQuantile), 6.0) * caution;
  tail_limit_ = std::max(QuantileOf(tails, kQuantile), kLeastTail) * caution;
  std::vector<double> but_one = std::move(ratios);  // that is longest: by chance
  *std::ranges::max_element(but_one) = 1;
  std::vector<double> body = but_one;  // how long few are says nothing of how far programs wander
  for (double& ratio : body) ratio = std::min(ratio, tail_ratio_);
  spreads_.clear();
  highest_.clear();
  for (size_t length = 1; length * kLeastBlocks <= but_one.size(); length *= 2) {
    spreads_.push_back(caution * SpreadOfMeans(but_one, length));
    highest_.push_back(HighestMean(body, length));
  }
}

// Of the mean over so many steps: as that of half as many, or quarters, has shrunk, it goes on shrinking.
double Detector::SpreadOf(size_t steps) const {
  const size_t scale = std::min(static_cast<size_t>(std::bit_width(steps)), spreads_.size()) - 1;
  const size_t doublings = std::min(scale, kDoublings);
  if (doublings == 0) return spreads_[scale];
  const double shrinks = std::log2(spreads_[scale - doublings] / std::max(spreads_[scale], 1e-9));
  const double exponent = std::clamp(shrinks / static_cast<double>(doublings), 0.0, 0.5);
  return spreads_[scale] *
         std::pow(static_cast<double>(size_t{1} << scale) / static_cast<double>(steps), exponent);
}

// What is slower by so much, over so many steps, isn't chance.
bool Detector::IsLarge(double slowdown, size_t steps) const {
  const double least = learnt_ns_ < kEarlyNs ? kEarlySlowdown : kLeastSlowdown;
  return slowdown > std::max(least, 1 + kDeviations * SpreadOf(steps));
}

// Without the longest step: one alone is an outlier, not a rate. Higher by far than any such mean of clean
// ones: it is looked at again with every step.
bool Detector::MeanIsHigh(int64_t window_ns) const {
  double sum = 0, usual = 0;
  const Recent* longest = nullptr;
  size_t count = 0;
  for (const Recent& step : recent_) {
    if (step.end_ns <= recent_.back().end_ns - window_ns) continue;
    sum += step.ratio * step.usual_ns;
    usual += step.usual_ns;
    ++count;
    if (longest == nullptr || step.ratio > longest->ratio) longest = &step;
  }
  if (count < 4) return false;
  sum -= longest->ratio * longest->usual_ns;
  usual -= longest->usual_ns;
  const size_t scale = std::min(static_cast<size_t>(std::bit_width(count - 1)), highest_.size()) - 1;
  return IsLarge(sum / usual, count - 1) && sum / usual > 1 + kTimesHighest * (highest_[scale] - 1);
}

// From there on, and from nowhere else more so, steps are longer by half of what those of the window are on
// average, or more: what was a little slower before is no part of it. No step counts for more than
// `most_ratio`.
size_t Detector::LikeliestOnset(int64_t window_ns, double most_ratio) const {
  double ns = 0, usual_ns = 0;
  for (const Recent& step : recent_ | std::views::reverse) {
    if (step.end_ns <= recent_.back().end_ns - window_ns) break;
    ns += std::min(step.ratio, most_ratio) * step.usual_ns;
    usual_ns += step.usual_ns;
  }
  const double reference = (1 + std::max(ns / usual_ns, kLeastSlowdown)) / 2;
  size_t first = recent_.size();
  double sum = 0, most = 0;
  for (size_t i = recent_.size(); i-- > 0;) {
    sum += (std::min(recent_[i].ratio, most_ratio) - reference) * recent_[i].usual_ns;
    if (sum <= most) continue;
    most = sum;
    first = i;
  }
  return first;
}

void Detector::Open(size_t onset) {
  if (onset == recent_.size()) return;
  slow_ns_ = usual_ns_ = 0;
  double longest_ns = 0;  // what the longest of them lost
  for (const Recent& step : recent_ | std::views::drop(onset)) {
    slow_ns_ += step.ratio * step.usual_ns;
    usual_ns_ += step.usual_ns;
    longest_ns = std::max(longest_ns, (step.ratio - 1) * step.usual_ns);
  }
  const size_t steps = recent_.size() - onset;
  if (steps < 2 || !IsLarge(slowdown(), steps)) return;
  // Lost time that somebody would notice: two steps that are a little long are nothing, nor is one that is.
  const double lost_ns = slow_ns_ - usual_ns_;
  if (lost_ns < std::max(kLeastLostNs, kLeastLostSteps * usual_ns_ / static_cast<double>(steps)) ||
      lost_ns - longest_ns < kLeastLostBesideNs)
    return;
  open_ = true;
  onset_ns_ = recent_[onset].start_ns;
  held_.clear();
}

// Whether the last three seconds, or five steps, were as before the incident.
bool Detector::Recovered() {
  const int64_t now_ns = recent_.back().end_ns;
  double ns = 0, usual_ns = 0;
  size_t slow = 0, count = 0;
  int64_t since_ns = now_ns;
  int64_t calm_since_ns = 0;  // after the last slow one
  for (auto step = recent_.rbegin(); step != recent_.rend(); ++step) {
    if (step->start_ns < onset_ns_) return false;
    if (count >= kCalmSteps && now_ns - since_ns >= kCalmNs) break;
    ns += step->ratio * step->usual_ns;
    usual_ns += step->usual_ns;
    ++count;
    if (IsSlow(*step) && slow++ == 0) calm_since_ns = step->end_ns;
    since_ns = step->start_ns;
  }
  if (count < kCalmSteps || now_ns - since_ns < kCalmNs) return false;
  const double clean = kCalmTimes * CleanShareAbove(1 + Excess() / 2);
  const double share = static_cast<double>(slow) / static_cast<double>(count);
  recovered_ns_ = share > clean ? calm_since_ns : since_ns;
  return share <= std::max(kCalmShare, clean) &&
         ns / usual_ns - 1 < std::max(kCalmExcess * Excess(), (kLeastSlowdown - 1) / 2);
}

// Whether the last second is far slower than the incident until then: something else has come.
bool Detector::IsWorse() {
  const int64_t since_ns = recent_.back().end_ns - kMeanWindowNs;
  double now_ns = 0, now_usual_ns = 0;
  int slow = 0, count = 0;
  int64_t first_ns = INT64_MAX;
  for (const Recent& step : recent_) {
    if (step.start_ns < std::max(since_ns, onset_ns_)) continue;
    now_ns += step.ratio * step.usual_ns;
    now_usual_ns += step.usual_ns;
    first_ns = std::min(first_ns, step.start_ns);
    ++count;
    if (step.ratio > kWorseRatio) ++slow;
  }
  const double before_ns = slow_ns_ - now_ns;
  const double before_usual_ns = usual_ns_ - now_usual_ns;
  if (count < 3 || slow * 2 < count || before_usual_ns < 2 * now_usual_ns) return false;
  const double excess = now_ns / now_usual_ns - 1;
  if (excess < kWorse * std::max(before_ns / before_usual_ns - 1, kLeastSlowdown - 1) ||
      1 + excess < kWorseRatio)
    return false;
  recovered_ns_ = onset_ns_ = first_ns;
  slow_ns_ = now_ns;
  usual_ns_ = now_usual_ns;
  return true;
}

Detector::Verdict Detector::Overrun(int64_t start_ns, int64_t now_ns) {
  if (open_) return Verdict::kSlow;
  if (!HasBaseline()) return Verdict::kLearning;
  double usual_ns = 0;
  for (const auto& [id, type] : types_)
    if (type.clean.size() >= kLeastOfType) usual_ns = std::max(usual_ns, type.mean_ns);
  const auto age_ns = static_cast<double>(now_ns - start_ns);
  if (usual_ns == 0 || age_ns < static_cast<double>(kLeastOverrunNs) ||
      age_ns < kOverrun * clean_ratios_.back() * usual_ns)
    return Verdict::kClean;
  open_ = true;
  onset_ns_ = start_ns;
  slow_ns_ = age_ns;
  usual_ns_ = usual_ns;
  held_.clear();
  return Verdict::kSlow;
}

}  // namespace gpusonde::diagnose
