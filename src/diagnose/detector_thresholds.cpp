// SPDX-License-Identifier: Apache-2.0
#include "diagnose/detector_thresholds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <utility>

#include "base/order_statistics.h"
#include "diagnose/detector_table.h"

namespace gpusonde::diagnose {
namespace {

constexpr double kMadToDeviation = 1.4826;  // of normally distributed values

double QuantileOf(std::vector<double> values, double quantile) {
  const auto rank = static_cast<size_t>(quantile * static_cast<double>(values.size()));
  return ValueOfRank(values, std::min(values.size() - 1, rank));
}

double ScaleOf(const CleanSteps& clean) {
  std::vector<double> deviations;
  for (const CleanSteps::Learnt& step : clean.newest()) deviations.push_back(std::abs(step.log_ratio));
  return std::max(kMadToDeviation * MedianOf(deviations), kDetector.min.scale.value);
}

std::vector<double> RatiosOf(const CleanSteps& clean) {
  std::vector<double> ratios;
  ratios.reserve(clean.newest().size());
  for (const CleanSteps::Learnt& step : clean.newest()) ratios.push_back(clean.RatioOf(step));
  return ratios;
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

// The winsorised deviation's contribution to a CUSUM.
double Addend(double z, double reference, double most) { return std::clamp(z, -most, most) - reference; }

// The random numbers of the bootstrap, which are the same each time.
std::vector<uint32_t> Draws(size_t count) {
  std::vector<uint32_t> draws(count);
  std::ranges::generate(draws, std::mt19937(1));
  return draws;
}

// Draws runs of steps in blocks from a circle of steps, and returns the highest value of each CUSUM in each
// run.
std::vector<Cusums> Bootstrap(std::span<const Cusums> steps) {
  const size_t block = static_cast<size_t>(kDetector.bootstrap.block.value);
  const size_t blocks = (static_cast<size_t>(kDetector.bootstrap.run_steps.value) + block - 1) / block;

  struct Effects {
    CusumBlock small, large, tail;
  };
  std::vector<Effects> effects(steps.size());  // of the block that begins at each step
  for (size_t first = 0; first < steps.size(); ++first)
    for (size_t i = 0; i < block; ++i) {
      const Cusums& step = steps[(first + i) % steps.size()];
      effects[first].small.Add(step.small);
      effects[first].large.Add(step.large);
      effects[first].tail.Add(step.tail);
    }

  std::vector<Cusums> most(static_cast<size_t>(kDetector.bootstrap.runs.value));
  static const std::vector<uint32_t> kDraws = Draws(most.size() * blocks);
  auto draw = kDraws.begin();
  for (Cusums& highest : most) {
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

// The index of the longest measured mean of at most so many steps.
size_t LevelOf(size_t steps, size_t levels) {
  return std::min(static_cast<size_t>(std::bit_width(steps)), levels) - 1;
}

}  // namespace

Thresholds::Thresholds(const CleanSteps& clean)
    : learnt_(clean.learnt()), scale_(ScaleOf(clean)), ratios_(RatiosOf(clean)) {
  std::ranges::sort(ratios_);
  tail_ratio_ = std::max(kDetector.cusum.beyond_tail * QuantileOf(ratios_, kDetector.cusum.tail_quantile),
                         kDetector.min.slowdown.value);
  // Few clean steps underestimate tails: raise the thresholds.
  const double caution = 1 + kDetector.bootstrap.caution / static_cast<double>(clean.newest().size());
  SetCusums(clean, caution);
  SetMeans(clean, caution);
}

void Thresholds::SetCusums(const CleanSteps& clean, double caution) {
  std::vector<Cusums> addends;
  addends.reserve(clean.newest().size());
  for (const CleanSteps::Learnt& step : clean.newest())
    addends.push_back(AddendsOf(step.log_ratio, clean.RatioOf(step)));
  const std::vector<Cusums> highest = Bootstrap(addends);
  const auto threshold = [&](double Cusums::* cusum, double min) {
    std::vector<double> values;
    for (const Cusums& run : highest) values.push_back(run.*cusum);
    return std::max(QuantileOf(std::move(values), kDetector.bootstrap.quantile), min) * caution;
  };
  cusums_ = {.small = threshold(&Cusums::small, kDetector.cusum.min_threshold),
             .large = threshold(&Cusums::large, kDetector.cusum.min_threshold),
             .tail = threshold(&Cusums::tail, kDetector.cusum.min_tail)};
}

void Thresholds::SetMeans(const CleanSteps& clean, double caution) {
  std::vector<double> without_longest = RatiosOf(clean);  // a single longest step is chance
  *std::ranges::max_element(without_longest) = 1;
  std::vector<double> body = without_longest;  // without the tail, which says nothing about drift
  for (double& ratio : body) ratio = std::min(ratio, tail_ratio_);
  for (size_t length = 1; length * kDetector.mean.min_blocks <= without_longest.size(); length *= 2) {
    spreads_.push_back(caution * SpreadOfMeans(without_longest, length));
    highest_.push_back(HighestMean(body, length));
  }
}

bool Thresholds::AreOutdated(const CleanSteps& clean) const {
  return clean.learnt() - learnt_ >=
         std::max(kDetector.baseline.refresh.value, clean.newest().size() / kDetector.baseline.refresh_share);
}

Cusums Thresholds::AddendsOf(double log_ratio, double ratio) const {
  const double z = log_ratio / scale_;
  return {.small = Addend(z, kDetector.cusum.small_reference, kDetector.cusum.small_max),
          .large = Addend(z, kDetector.cusum.large_reference, kDetector.cusum.large_max),
          .tail = (IsInTail(ratio) ? 1 : 0) - kDetector.cusum.tail_reference};
}

bool Thresholds::AreExceededBy(const Cusums& cusums) const {
  return cusums.small > cusums_.small || cusums.large > cusums_.large || cusums.tail > cusums_.tail;
}

bool Thresholds::AreNearedBy(const Cusums& cusums) const {
  return cusums.small > cusums_.small / 2 || cusums.large > cusums_.large / 2;
}

double Thresholds::ShareAbove(double ratio) const {
  const auto above = ratios_.end() - std::ranges::upper_bound(ratios_, ratio);
  return static_cast<double>(above) / static_cast<double>(ratios_.size());
}

// That of the longest measured block of at most as many steps, extrapolated by how much it shrank over the
// last doublings of the length.
double Thresholds::SpreadOf(size_t steps) const {
  const size_t level = LevelOf(steps, spreads_.size());
  const size_t doublings = std::min(level, kDetector.mean.doublings.value);
  if (doublings == 0) return spreads_[level];
  const double shrinks = std::log2(spreads_[level - doublings] / std::max(spreads_[level], 1e-9));
  const double exponent = std::clamp(shrinks / static_cast<double>(doublings), 0.0, 0.5);
  return spreads_[level] *
         std::pow(static_cast<double>(size_t{1} << level) / static_cast<double>(steps), exponent);
}

double Thresholds::HighestMeanOf(size_t steps) const { return highest_[LevelOf(steps, highest_.size())]; }

}  // namespace gpusonde::diagnose
