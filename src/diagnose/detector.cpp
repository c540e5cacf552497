// SPDX-License-Identifier: Apache-2.0
#include "diagnose/detector.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <ranges>
#include <span>
#include <utility>

#include "base/order_statistics.h"
#include "diagnose/cusum.h"
#include "diagnose/detector_table.h"

namespace gpusonde::diagnose {
namespace {

// Reorders `values`.
double QuantileOf(std::vector<double>& values, double quantile) {
  const auto rank = static_cast<size_t>(quantile * static_cast<double>(values.size()));
  return ValueOfRank(values, std::min(values.size() - 1, rank));
}

// Standard deviation of the means of consecutive blocks of `length` values.
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

// The highest mean of any `length` consecutive values.
double HighestMean(std::span<const double> values, size_t length) {
  double sum = 0, most = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    sum += values[i];
    if (i >= length) sum -= values[i - length];
    if (i + 1 >= length) most = std::max(most, sum);
  }
  return most / static_cast<double>(length);
}

// More than sums over a year of steps of a millisecond differ from those of their last ones, by rounding.
constexpr double kRounding = 1.00001;

// The winsorised deviation's contribution to a CUSUM.
double Addend(double z, double reference, double most) { return std::clamp(z, -most, most) - reference; }

// One value for each CUSUM.
struct Addends {
  double small = 0, large = 0, tail = 0;
};

// The random numbers of the bootstrap, which are the same each time.
std::vector<uint32_t> Draws(size_t count) {
  std::vector<uint32_t> draws(count);
  std::ranges::generate(draws, std::mt19937(1));
  return draws;
}

// Draws runs of steps in blocks from a circle of steps, and returns the highest value of each CUSUM in each
// run.
std::vector<Addends> Bootstrap(std::span<const Addends> steps) {
  const size_t block = static_cast<size_t>(kDetector.bootstrap.block.value);
  const size_t blocks = (static_cast<size_t>(kDetector.bootstrap.run_steps.value) + block - 1) / block;

  struct Effects {
    CusumBlock small, large, tail;
  };
  std::vector<Effects> effects(steps.size());  // of the block that begins at each step
  for (size_t first = 0; first < steps.size(); ++first)
    for (size_t i = 0; i < block; ++i) {
      const Addends& step = steps[(first + i) % steps.size()];
      effects[first].small.Add(step.small);
      effects[first].large.Add(step.large);
      effects[first].tail.Add(step.tail);
    }

  std::vector<Addends> most(static_cast<size_t>(kDetector.bootstrap.runs.value));
  static const std::vector<uint32_t> kDraws = Draws(most.size() * blocks);
  auto draw = kDraws.begin();
  for (Addends& highest : most) {
    BlockwiseCusum small, large, tail;
    for (size_t at = 0; at < blocks; ++at) {
      const Effects& drawn = effects[*draw++ % steps.size()];
      small.Add(drawn.small);
      large.Add(drawn.large);
      tail.Add(drawn.tail);
    }
    highest = {small.highest, large.highest, tail.highest};
  }
  return most;
}

}  // namespace

bool Detector::Knows(const Id128& type) const {
  const auto found = types_.find(type);
  return found != types_.end() && found->second.steps() >= kDetector.baseline.min_of_type;
}

double Detector::slowdown() const { return usual_ns_ > 0 ? slow_ns_ / usual_ns_ : 1; }

double Detector::Excess() const { return std::max(slowdown() - 1, kDetector.min.slowdown - 1); }

// Whether a step within an incident is closer to the incident's mean than to the baseline.
bool Detector::IsSlow(const Recent& step) const { return step.ratio > 1 + Excess() / 2; }

double Detector::TailAddend(double ratio) const {
  return (ratio > tail_ratio_ ? 1 : 0) - kDetector.cusum.tail_reference;
}

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

Detector::Verdict Detector::Ingest(const Step& step) {
  ++seen_;
  if (seen_ <= kDetector.baseline.warm_up_steps || step.end_ns <= step.start_ns) return Verdict::kLearning;
  if (overruns_) CountOverrun(step);
  if (!Knows(step.type) || !HasBaseline()) return IngestUnknownType(step);
  unknown_steps_ = 0;
  const UsualLength& usual = types_[step.type];
  const auto length_ns = static_cast<double>(step.end_ns - step.start_ns);
  const double usual_ns = usual.MeanNs(step.work);
  const double z = (std::log(length_ns) - usual.MedianLog(step.work)) / scale_;
  const double ns_before = recent_.empty() ? 0 : recent_.back().ns_so_far;
  const double usual_ns_before = recent_.empty() ? 0 : recent_.back().usual_ns_so_far;
  recent_.push_back({step.start_ns, step.end_ns, length_ns / usual_ns, usual_ns, z, ns_before + length_ns,
                     usual_ns_before + usual_ns});
  while (recent_.size() > kDetector.mean.min_recent &&
         recent_.front().end_ns < step.end_ns - 2 * kDetector.calm.ns)
    recent_.pop_front();

  small_ = Grow(small_, Addend(z, kDetector.cusum.small_reference, kDetector.cusum.small_max));
  large_ = Grow(large_, Addend(z, kDetector.cusum.large_reference, kDetector.cusum.large_max));
  tail_ = Grow(tail_, TailAddend(recent_.back().ratio));

  if (open_) {
    slow_ns_ += length_ns;
    usual_ns_ += usual_ns;
    if (const std::optional<int64_t> since_ns = WorseSince(); since_ns.has_value()) {
      if (worse_since_ns_ == 0) worse_since_ns_ = *since_ns;
      return Verdict::kWorse;
    }
    worse_since_ns_ = 0;
    if (!Recovered()) return Verdict::kSlow;
    Close();
    return Verdict::kClosed;
  }
  const bool mean_is_high = MeanIsHigh(kDetector.mean.window_ns);
  if (small_ > small_threshold_ || large_ > large_threshold_ || tail_ > tail_threshold_ || mean_is_high)
    Open(LikeliestOnset(kDetector.mean.window_ns, kDetector.mean.max_ratio));
  // Few steps that each lose much, far apart: capped, they would lose less than the steps between them gain.
  if (!open_ && OutliersAreMore(kDetector.mean.window_ns))
    Open(LikeliestOnset(kDetector.mean.window_ns, HUGE_VAL));
  if (!open_ && MeanIsHigh(kDetector.mean.long_window_ns))
    Open(LikeliestOnset(kDetector.mean.long_window_ns, HUGE_VAL));
  if (open_) return Verdict::kSlow;
  CountClean();
  held_.push_back(step);
  if (held_.size() > kDetector.baseline.max) held_.pop_front();
  if ((Suspicious() || mean_is_high) && baseline_ns_ >= kDetector.min.warm_up_ns) return Verdict::kSuspect;
  // A suspicion that has passed was none: without its steps, the longer half of those that vary in cycles
  // would be missing in the baseline, and the shorter half would become what is usual.
  while (held_.size() > kDetector.baseline.hold) {
    Learn(held_.front());
    held_.pop_front();
  }
  return Verdict::kClean;
}

// The step that overran has ended: what was counted of it is replaced by its whole length, which tells later
// how much slower steps were, even where its type has no baseline.
void Detector::CountOverrun(const Step& step) {
  overruns_ = false;
  slow_ns_ = 0;
  const double usual_ns = std::exchange(usual_ns_, 0);
  if (Knows(step.type)) return;
  slow_ns_ = static_cast<double>(step.end_ns - step.start_ns);
  usual_ns_ = usual_ns;
}

// Handles a step of a type without a baseline, which can't be judged.
Detector::Verdict Detector::IngestUnknownType(const Step& step) {
  if (!open_) {
    Learn(step);
    return Verdict::kLearning;
  }
  if (unknown_steps_++ == 0) unknown_since_ns_ = step.start_ns;
  if (unknown_steps_ < kDetector.calm.unknown_steps ||
      step.end_ns - unknown_since_ns_ < kDetector.calm.unknown_ns)
    return Verdict::kSlow;
  recovered_ns_ = std::max(onset_ns_, unknown_since_ns_);
  Close();
  return Verdict::kClosed;
}

void Detector::Close() {
  open_ = overruns_ = false;
  small_ = large_ = tail_ = 0;
  worse_since_ns_ = 0;
  unknown_steps_ = 0;
  recent_.clear();
  held_.clear();
}

void Detector::Learn(const Step& step) {
  const auto length_ns = static_cast<double>(step.end_ns - step.start_ns);
  baseline_ns_ += step.end_ns - step.start_ns;
  UsualLength& usual = types_[step.type];
  usual.Add({step.end_ns, length_ns, step.work});
  if (usual.steps() < kDetector.baseline.min_of_type) return;
  baseline_.push_back({step.type, step.end_ns, length_ns, step.work,
                       std::log(length_ns) - usual.MedianLog(step.work),
                       baseline_ns_ <= kDetector.min.warm_up_ns});
  if (baseline_.size() > kDetector.baseline.max) baseline_.pop_front();
  if (baseline_.size() < kDetector.baseline.learn_steps) return;
  const bool is_new = ++new_in_baseline_ >= std::max(kDetector.baseline.refresh.value,
                                                     baseline_.size() / kDetector.baseline.refresh_share);
  if (HasBaseline() && !is_new) return;
  new_in_baseline_ = 0;
  UpdateThresholds();
}

void Detector::ForgetBefore(int64_t time_ns) {
  std::erase_if(baseline_, [&](const BaselineStep& step) { return step.end_ns < time_ns; });
  for (auto& [type, usual] : types_) usual.ForgetBefore(time_ns);
  std::erase_if(types_, [](const auto& of_type) { return of_type.second.steps() == 0; });
  for (BaselineStep& step : baseline_)
    step.residual = std::log(step.length_ns) - types_[step.type].MedianLog(step.work);
  // Compared with what is no longer usual.
  clean_outliers_ = counted_ns_ = 0;
  recent_.clear();
  small_ = large_ = tail_ = 0;
  new_in_baseline_ = 0;
  scale_ = 0;
  if (baseline_.size() >= kDetector.baseline.learn_steps) UpdateThresholds();
}

// The first seconds of a program are often slower, and would hide a slow-down of their size.
void Detector::ForgetSlowStart() {
  const auto end = std::ranges::find(baseline_, false, &BaselineStep::warm_up);
  double ns = 0, usual_ns = 0;
  for (const BaselineStep& step : std::ranges::subrange(baseline_.begin(), end)) {
    ns += step.length_ns;
    usual_ns += types_[step.type].MeanNs(step.work);
  }
  const auto others = static_cast<size_t>(baseline_.end() - end);
  if (ns > kDetector.baseline.slow_start * usual_ns && others >= kDetector.baseline.learn_steps)
    baseline_.erase(baseline_.begin(), end);
}

void Detector::UpdateThresholds() {
  if (baseline_ns_ >= kDetector.baseline.long_ns) ForgetSlowStart();
  std::vector<double> clean, deviations;
  for (const BaselineStep& step : baseline_) {
    clean.push_back(step.residual);
    deviations.push_back(std::abs(step.residual));
  }
  scale_ = std::max(1.4826 * MedianOf(deviations), kDetector.min.scale.value);  // MAD as a standard deviation

  std::vector<double> ratios;
  ratios.reserve(baseline_.size());
  for (const BaselineStep& step : baseline_)
    ratios.push_back(step.length_ns / types_[step.type].MeanNs(step.work));
  clean_ratios_ = ratios;
  tail_ratio_ =
      std::max(kDetector.cusum.beyond_tail * QuantileOf(clean_ratios_, kDetector.cusum.tail_quantile),
               kDetector.min.slowdown.value);
  std::ranges::sort(clean_ratios_);

  std::vector<Addends> addends;
  addends.reserve(clean.size());
  for (size_t i = 0; i < clean.size(); ++i)
    addends.push_back({Addend(clean[i] / scale_, kDetector.cusum.small_reference, kDetector.cusum.small_max),
                       Addend(clean[i] / scale_, kDetector.cusum.large_reference, kDetector.cusum.large_max),
                       TailAddend(ratios[i])});
  std::vector<double> smalls, larges, tails;
  for (const Addends& most : Bootstrap(addends)) {
    smalls.push_back(most.small);
    larges.push_back(most.large);
    tails.push_back(most.tail);
  }
  // With few clean steps the bootstrap underestimates the tails: raise the thresholds.
  const double caution = 1 + kDetector.bootstrap.caution / static_cast<double>(clean.size());
  small_threshold_ =
      std::max(QuantileOf(smalls, kDetector.bootstrap.quantile), kDetector.cusum.min_threshold.value) *
      caution;
  large_threshold_ =
      std::max(QuantileOf(larges, kDetector.bootstrap.quantile), kDetector.cusum.min_threshold.value) *
      caution;
  tail_threshold_ =
      std::max(QuantileOf(tails, kDetector.bootstrap.quantile), kDetector.cusum.min_tail.value) * caution;
  std::vector<double> without_longest = std::move(ratios);  // a single longest step is chance
  *std::ranges::max_element(without_longest) = 1;
  std::vector<double> body = without_longest;  // without the tail, which says nothing about drift
  for (double& ratio : body) ratio = std::min(ratio, tail_ratio_);
  spreads_.clear();
  highest_.clear();
  for (size_t length = 1; length * kDetector.mean.min_blocks <= without_longest.size(); length *= 2) {
    spreads_.push_back(caution * SpreadOfMeans(without_longest, length));
    highest_.push_back(HighestMean(body, length));
  }
}

// Standard deviation of the mean of `steps` clean steps: that of the longest measured block of at most as
// many steps, extrapolated by how much it shrank over the last doublings of the length.
double Detector::SpreadOf(size_t steps) const {
  const size_t scale = std::min(static_cast<size_t>(std::bit_width(steps)), spreads_.size()) - 1;
  const size_t doublings = std::min(scale, kDetector.mean.doublings.value);
  if (doublings == 0) return spreads_[scale];
  const double shrinks = std::log2(spreads_[scale - doublings] / std::max(spreads_[scale], 1e-9));
  const double exponent = std::clamp(shrinks / static_cast<double>(doublings), 0.0, 0.5);
  return spreads_[scale] *
         std::pow(static_cast<double>(size_t{1} << scale) / static_cast<double>(steps), exponent);
}

// Whether a slow-down by this factor over so many steps is larger than chance.
bool Detector::IsLarge(double slowdown, size_t steps) const {
  const double least =
      baseline_ns_ < kDetector.min.warm_up_ns ? kDetector.min.warm_up_slowdown : kDetector.min.slowdown;
  return slowdown > std::max(least, 1 + kDetector.mean.deviations * SpreadOf(steps));
}

// Whether the mean step time in the window is high. The longest step is left out: a single one is an outlier.
// The mean must also be well above the highest such mean of clean steps, since it is tested at every step.
bool Detector::MeanIsHigh(int64_t window_ns) const {
  const auto first =
      std::ranges::upper_bound(recent_, recent_.back().end_ns - window_ns, {}, &Recent::end_ns);
  const auto count = static_cast<size_t>(recent_.end() - first);
  if (count < kDetector.min.steps_of_mean) return false;
  // Without the longest step the mean is no higher than with it, which the sums so far give without a look at
  // each step. Most often that is an answer.
  const double ns_before = first->ns_so_far - first->ratio * first->usual_ns;
  const double usual_ns_before = first->usual_ns_so_far - first->usual_ns;
  const double mean =
      (recent_.back().ns_so_far - ns_before) / (recent_.back().usual_ns_so_far - usual_ns_before);
  if (!IsLarge(mean * kRounding, count - 1)) return false;
  double sum = 0, usual = 0;
  const Recent* longest = nullptr;
  for (const Recent& step : std::ranges::subrange(first, recent_.end())) {
    sum += step.ratio * step.usual_ns;
    usual += step.usual_ns;
    if (longest == nullptr || step.ratio > longest->ratio) longest = &step;
  }
  sum -= longest->ratio * longest->usual_ns;
  usual -= longest->usual_ns;
  const size_t scale = std::min(static_cast<size_t>(std::bit_width(count - 1)), highest_.size()) - 1;
  return IsLarge(sum / usual, count - 1) &&
         sum / usual > 1 + kDetector.mean.highest_factor * (highest_[scale] - 1);
}

// Whether a step loses much, and hardly any clean one is as long.
bool Detector::IsOutlier(const Recent& step) const {
  return step.ratio > tail_ratio_ && (step.ratio - 1) * step.usual_ns >= kDetector.outlier.lost_ns;
}

// Counts the newest step as clean, whether or not it is suspected: it may turn out to belong to an incident.
void Detector::CountClean() {
  const Recent& step = recent_.back();
  if (IsOutlier(step)) ++clean_outliers_;
  counted_ns_ += step.ratio * step.usual_ns;
  if (counted_ns_ < kDetector.outlier.counted_ns) return;
  counted_ns_ /= 2;
  clean_outliers_ /= 2;
}

// The steps from `onset` on aren't clean; the newest hasn't been counted.
void Detector::UncountSince(size_t onset) {
  for (size_t i = onset; i + 1 < recent_.size(); ++i) {
    if (IsOutlier(recent_[i])) clean_outliers_ = std::max(clean_outliers_ - 1, 0.0);
    counted_ns_ = std::max(counted_ns_ - recent_[i].ratio * recent_[i].usual_ns, 0.0);
  }
}

// Whether the newest step is an outlier, and the window has more of them than clean steps have by chance.
// Counts of events that are independent of each other are Poisson-distributed.
bool Detector::OutliersAreMore(int64_t window_ns) const {
  if (counted_ns_ == 0 || !IsOutlier(recent_.back())) return false;
  int outliers = 0;
  for (const Recent& step : recent_ | std::views::reverse) {
    if (step.end_ns <= recent_.back().end_ns - window_ns) break;
    outliers += IsOutlier(step) ? 1 : 0;
  }
  const double before = std::max(clean_outliers_ - (outliers - 1), 0.0);
  // One more than were seen: none in ten seconds doesn't mean that there are none.
  const double expected = (before + 1) * static_cast<double>(window_ns) / counted_ns_;
  double fewer = 0, exactly = std::exp(-expected);
  for (int count = 0; count < outliers; ++count) {
    fewer += exactly;
    exactly *= expected / (count + 1);
  }
  return 1 - fewer < kDetector.outlier.chance;
}

// The onset that maximises the sum of excess times since then. A step's excess is what it takes above the
// midpoint between the baseline and the window's mean, so that slightly slow steps before the onset don't
// count. Each step's ratio is capped at `max_ratio`.
size_t Detector::LikeliestOnset(int64_t window_ns, double max_ratio) const {
  double ns = 0, usual_ns = 0;
  for (const Recent& step : recent_ | std::views::reverse) {
    if (step.end_ns <= recent_.back().end_ns - window_ns) break;
    ns += std::min(step.ratio, max_ratio) * step.usual_ns;
    usual_ns += step.usual_ns;
  }
  const double reference = (1 + std::max(ns / usual_ns, kDetector.min.slowdown.value)) / 2;
  size_t first = recent_.size();
  double sum = 0, most = 0;
  for (size_t i = recent_.size(); i-- > 0;) {
    sum += (std::min(recent_[i].ratio, max_ratio) - reference) * recent_[i].usual_ns;
    if (sum <= most) continue;
    most = sum;
    first = i;
  }
  return first;
}

void Detector::Open(size_t onset) {
  if (onset == recent_.size()) return;
  slow_ns_ = usual_ns_ = 0;
  double longest_ns = 0;  // the largest loss of a single step
  for (const Recent& step : recent_ | std::views::drop(onset)) {
    slow_ns_ += step.ratio * step.usual_ns;
    usual_ns_ += step.usual_ns;
    longest_ns = std::max(longest_ns, (step.ratio - 1) * step.usual_ns);
  }
  const size_t steps = recent_.size() - onset;
  if (steps < kDetector.min.slow_steps || !IsLarge(slowdown(), steps)) return;
  // Require enough lost time to matter, and not in a single step.
  const double lost_ns = slow_ns_ - usual_ns_;
  if (lost_ns < std::max(kDetector.min.lost_ns.value,
                         kDetector.min.lost_steps * usual_ns_ / static_cast<double>(steps)) ||
      lost_ns - longest_ns < kDetector.min.lost_beside_longest_ns)
    return;
  open_ = true;
  UncountSince(onset);
  onset_ns_ = recent_[onset].start_ns;
  evident_ns_ = recent_.back().end_ns;
  held_.clear();
}

// Whether steps have been as before the incident for the last 3 s and 5 steps.
bool Detector::Recovered() {
  const int64_t now_ns = recent_.back().end_ns;
  const double reference = 1 + Excess() / 2;
  double ns = 0, usual_ns = 0;
  size_t slow = 0, count = 0;
  int64_t since_ns = now_ns;
  // As in the search for the onset: the steps before the end have the largest sum of excess times, those
  // after it the smallest. The last slow step may be a single one, seconds later.
  int64_t calm_since_ns = now_ns;
  double excess_ns = 0, least_ns = 0;
  for (auto step = recent_.rbegin(); step != recent_.rend(); ++step) {
    if (step->start_ns < onset_ns_) return false;
    if (count >= kDetector.calm.steps && now_ns - since_ns >= kDetector.calm.ns) break;
    ns += step->ratio * step->usual_ns;
    usual_ns += step->usual_ns;
    ++count;
    if (IsSlow(*step)) ++slow;
    excess_ns += (step->ratio - reference) * step->usual_ns;
    since_ns = step->start_ns;
    if (excess_ns > least_ns) continue;
    least_ns = excess_ns;
    calm_since_ns = since_ns;
  }
  if (count < kDetector.calm.steps || now_ns - since_ns < kDetector.calm.ns) return false;
  const double clean = kDetector.calm.clean_factor * CleanShareAbove(1 + Excess() / 2);
  const double share = static_cast<double>(slow) / static_cast<double>(count);
  // Where clean steps are as irregular, the calm may seem to begin within the steps that were detected.
  recovered_ns_ = share > clean ? calm_since_ns : std::max(since_ns, std::min(evident_ns_, now_ns));
  return share <= std::max(kDetector.calm.slow_share.value, clean) &&
         ns / usual_ns - 1 < std::max(kDetector.calm.excess * Excess(), (kDetector.min.slowdown - 1) / 2);
}

// The start of the last second if it is much slower than the incident before: perhaps a new disturbance.
std::optional<int64_t> Detector::WorseSince() const {
  const int64_t since_ns = recent_.back().end_ns - kDetector.mean.window_ns;
  double now_ns = 0, now_usual_ns = 0;
  int slow = 0, count = 0;
  int64_t first_ns = INT64_MAX;
  for (const Recent& step : recent_) {
    if (step.start_ns < std::max(since_ns, onset_ns_)) continue;
    now_ns += step.ratio * step.usual_ns;
    now_usual_ns += step.usual_ns;
    first_ns = std::min(first_ns, step.start_ns);
    ++count;
    if (step.ratio > kDetector.worse.ratio) ++slow;
  }
  const double before_ns = slow_ns_ - now_ns;
  const double before_usual_ns = usual_ns_ - now_usual_ns;
  if (count < kDetector.worse.steps || slow * 2 < count ||
      now_usual_ns > kDetector.worse.max_share * before_usual_ns)
    return std::nullopt;
  const double excess = now_ns / now_usual_ns - 1;
  if (excess <
          kDetector.worse.factor * std::max(before_ns / before_usual_ns - 1, kDetector.min.slowdown - 1) ||
      1 + excess < kDetector.worse.ratio)
    return std::nullopt;
  return first_ns;
}

std::optional<TimeRange> Detector::LastPause() const {
  int64_t from_ns = 0, to_ns = 0;  // of the pause; to_ns: 0 until a slow step is found
  size_t steps = 0;
  const auto is_long = [&] {
    return steps >= kDetector.pause.steps && to_ns - from_ns >= kDetector.pause.ns;
  };
  for (const Recent& step : recent_ | std::views::reverse) {
    if (step.start_ns < onset_ns_) break;
    if (!IsSlow(step)) {
      if (to_ns == 0) continue;
      from_ns = step.start_ns;
      ++steps;
      continue;
    }
    if (is_long()) break;
    to_ns = step.start_ns;
    steps = 0;
  }
  return is_long() ? std::optional<TimeRange>({from_ns, to_ns}) : std::nullopt;
}

void Detector::Split(int64_t recovered_ns, int64_t since_ns) {
  recovered_ns_ = recovered_ns;
  onset_ns_ = evident_ns_ = since_ns;
  worse_since_ns_ = 0;
  slow_ns_ = usual_ns_ = 0;
  for (const Recent& step : recent_) {
    if (step.start_ns < onset_ns_) continue;
    slow_ns_ += step.ratio * step.usual_ns;
    usual_ns_ += step.usual_ns;
  }
}

Detector::Verdict Detector::Overrun(int64_t start_ns, int64_t now_ns) {
  if (open_) return Verdict::kSlow;
  if (!HasBaseline()) return Verdict::kLearning;
  double usual_ns = 0;
  for (const auto& [id, usual] : types_)
    if (usual.steps() >= kDetector.baseline.min_of_type) usual_ns = std::max(usual_ns, usual.mean_ns());
  const auto age_ns = static_cast<double>(now_ns - start_ns);
  if (usual_ns == 0 || age_ns < static_cast<double>(kDetector.overrun.min_ns.value) ||
      age_ns < kDetector.overrun.factor * clean_ratios_.back() * usual_ns)
    return Verdict::kClean;
  open_ = overruns_ = true;
  onset_ns_ = evident_ns_ = start_ns;
  slow_ns_ = age_ns;
  usual_ns_ = usual_ns;
  held_.clear();
  return Verdict::kSlow;
}

}  // namespace gpusonde::diagnose
