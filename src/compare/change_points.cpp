// SPDX-License-Identifier: Apache-2.0
#include "compare/change_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "analyze/stats/inference.h"

namespace gpusonde::compare {
namespace {

// Sums of values minus their mean, and of their squares.
class Sums {
 public:
  explicit Sums(std::span<const double> values) : count_(static_cast<double>(values.size())), sums_(1, 0.) {
    double mean = 0;
    for (const double value : values) mean += value / count_;
    for (const double value : values) {
      // Equal values differ from their mean by rounding.
      const double deviation = std::abs(value - mean) < kRounding * std::abs(mean) ? 0 : value - mean;
      sums_.push_back(sums_.back() + deviation);
      squares_ += deviation * deviation;
    }
  }

  Stretch Measure(size_t from, size_t to) const {
    const auto inside = static_cast<double>(to - from);
    const double outside = count_ - inside;
    const double difference = (sums_[to] - sums_[from]) * (1 / inside + 1 / outside);
    const double weight = 1 / inside + 1 / outside;
    const double freedom = count_ - 2;
    double squares = squares_ - difference * difference / weight;
    if (squares < kRounding * squares_) squares = 0;
    return {.from = from,
            .to = to,
            .difference = difference,
            .error = std::sqrt(squares / freedom * weight),
            .freedom = freedom};
  }

 private:
  static constexpr double kRounding = 1e-12;

  double count_;
  double squares_ = 0;
  std::vector<double> sums_;
};

// The best of one kind, and among how many.
struct Best {
  std::optional<Stretch> stretch;
  double t = 0;
  double places = 0;

  void Add(const Stretch& one, double margin) {
    const double beyond = std::abs(one.difference) - margin;
    // Without any variation a difference is certain.
    const double of_this = one.error > 0 ? beyond / one.error
                           : beyond > 0  ? std::numeric_limits<double>::infinity()
                                         : 0;
    ++places;
    if (stretch.has_value() && of_this <= t) return;
    stretch = one;
    t = of_this;
  }

  // Of two kinds, and of changes up or down.
  void SetP() {
    if (!stretch.has_value() || t <= 0) return;
    stretch->p = std::isinf(t) ? 0 : std::min(1.0, 4 * places * StudentTail(t, stretch->freedom));
  }
};

}  // namespace

Stretch MeasureStretch(std::span<const double> values, size_t from, size_t to) {
  return Sums(values).Measure(from, to);
}

std::optional<Stretch> FindStretch(std::span<const double> values, double margin) {
  const size_t count = values.size();
  if (count < 2 * kMinRunsOfStretch) return std::nullopt;
  const Sums sums(values);
  Best lasting, taken_back;
  for (size_t from = kMinRunsOfStretch; from + kMinRunsOfStretch <= count; ++from) {
    lasting.Add(sums.Measure(from, count), margin);
    for (size_t to = from + kMinRunsOfStretch; to + kMinRunsOfStretch <= count; ++to)
      taken_back.Add(sums.Measure(from, to), margin);
  }
  lasting.SetP();
  taken_back.SetP();
  const bool is_back = taken_back.stretch.has_value() && taken_back.stretch->p < lasting.stretch->p;
  return is_back ? taken_back.stretch : lasting.stretch;
}

}  // namespace gpusonde::compare
