// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

// How the time of one kernel is divided among the stacks that launched it.
//
// The kernel's time T is counted, and of its launches some are sampled: each independently, launch i
// with the probability p_i, and takes d_i on the device. The share of the launches from a stack s (or from
// any set of stacks) is the ratio of two Horvitz-Thompson sums,
//
//   R = sum over sampled i in s of d_i / p_i  ÷  sum over all sampled i of d_i / p_i,
//
// and their time T R. With independent sampling the variance of R is, to first order (Taylor linearisation of
// the ratio),
//
//   sum over sampled i of (1 - p_i) / p_i² e_i²  ÷  (sum over i of d_i / p_i)²,   e_i = d_i (1[i in s] - R).
//
// The part of s in it, and that of the others, each count one more launch like those sampled: of a handful,
// the interval would be too narrow (docs/sampling.md).
//
// C.-E. Särndal, B. Swensson, J. Wretman: Model Assisted Survey Sampling, 1992, sections 2.8 and 5.6. Like
// any such estimate it knows nothing of stacks that were never sampled: where all sampled launches are from
// one stack, the interval has no width. And it takes sums for normally distributed: of stacks with some 25
// sampled launches whose durations vary tenfold, 92 % of the intervals hold the truth instead of 95 %
// (launch_shares_test with a quarter of its launches).
namespace gpusonde::model {

// The sums over sampled launches used above; the sums of a set of stacks are those of its stacks added up.
struct LaunchSums {
  double time_ns = 0;       // sum of d / p
  double variance_ns2 = 0;  // sum of (1 - p) / p² d²

  LaunchSums& operator+=(const LaunchSums& more) {
    time_ns += more.time_ns;
    variance_ns2 += more.variance_ns2;
    return *this;
  }
};

// The variance of `total_ns` R in ns², where `part` are the sums of s and `whole` those of all launches.
// 0 when no launch was sampled. Never NaN or infinite, whatever the sums.
double ShareVariance(int64_t total_ns, const LaunchSums& part, const LaunchSums& whole);

// Half the width of the 95 % interval of an estimate with this variance, rounded up.
int64_t IntervalNs(double variance_ns2);

// Divides `total` in proportion to `weights` into whole numbers that sum to it exactly (largest remainder;
// ties go to the first). If no weight is positive, the first gets everything. Weights that are not positive
// numbers and a negative total count as 0. `weights` must not be empty.
std::vector<int64_t> Apportion(int64_t total, std::span<const double> weights);

}  // namespace gpusonde::model
