// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace gpusonde::diagnose {

// How long clean steps of one type usually take. Where steps of a type differ in work, as requests of any
// size do, the time grows with the work: then a step is compared with others of its size, by a resistant line
// (Tukey 1977, Exploratory Data Analysis, section 5) through the medians of the smallest and the largest
// third. Not thread-safe.
class UsualLength {
 public:
  struct Step {
    int64_t end_ns = 0;  // ns since the epoch
    double length_ns = 0;
    int64_t work = 0;  // kernels and copies
  };
  void Add(const Step& clean);
  // Forgets steps that ended before.
  void ForgetBefore(int64_t time_ns);

  // The newest clean steps that it comes from.
  size_t steps() const { return clean_.size(); }

  // The mean of all.
  double mean_ns() const { return mean_ns_; }
  // The mean of steps with so much work.
  double MeanNs(int64_t work) const { return mean_ratio_ * ByWork(work); }
  // The logarithm of the median of steps with so much work.
  double MedianLog(int64_t work) const;

 private:
  // Proportional to the length of steps with so much work.
  double ByWork(int64_t work) const;
  void SumUp();
  void FitLine();

  std::deque<Step> clean_;
  size_t since_summed_up_ = 0;
  double mean_ns_ = 0;
  double fixed_ns_ = 0, per_work_ns_ = 0;   // the line; 0: the length doesn't depend on the work
  double mean_ratio_ = 0, median_log_ = 0;  // of lengths over ByWork
};

}  // namespace gpusonde::diagnose
