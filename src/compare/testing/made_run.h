// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compare/comparison.h"

// For tests: runs whose kernels vary as measured ones do.
namespace gpusonde::compare {

// In a test, Run is a function of gtest.
using Runs = std::vector<Run>;

inline constexpr int kWindows = 128;

// Kernels whose durations vary, and drift slowly as clocks do, by a percent in all.
struct MadeRun {
  int kernels = 20;
  int launches = 640;  // of each kernel
  double noise = 0.05;
  double drift = 0.9;        // of a window's deviation remains in the next one
  double slower = 1;         // the last kernel takes so many times as long
  double more_launches = 1;  // of the last kernel
  double variation = 0;      // of counts over time, relative, as an error of their mean
};

inline Run Make(const MadeRun& made, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  compare::Run run;
  run.paths = {"made"};
  run.ranks = 1;
  run.progress = {.variance = 1e-6, .freedom = 15};
  double drift = 0;
  std::vector<double> of_window;
  for (int i = 0; i < kWindows; ++i)
    of_window.push_back(drift = made.drift * drift + std::sqrt(1 - made.drift * made.drift) * normal(random));
  for (int k = 0; k < made.kernels; ++k) {
    const bool last = k + 1 == made.kernels;
    const int launches = last ? static_cast<int>(made.launches * made.more_launches) : made.launches;
    const double typical_ns = 20'000 * (1 + k) * (last ? made.slower : 1);
    std::vector<analyze::Batch> batches(kWindows);
    double logs = 0, total_ns = 0;
    for (int i = 0; i < launches; ++i) {
      const auto window = static_cast<size_t>(i) * kWindows / static_cast<size_t>(launches);
      const double log = std::log(typical_ns) + made.noise * normal(random) + 0.01 * of_window[window];
      ++batches[window].count;
      batches[window].sum += std::llround(log * 1e9);
      logs += log;
      total_ns += std::exp(log);
    }
    analyze::MeanError error = analyze::ErrorOfMean(batches);
    error.variance /= 1e18;
    Kernel& kernel = run.kernels["kernel" + std::to_string(k)];
    kernel.amount = {.count = launches, .total_ns = std::llround(total_ns)};
    kernel.launches = {.variance = made.variation * made.variation, .freedom = kWindows - 1};
    kernel.groups[1] = {.count = launches, .total_ns = total_ns, .log_mean = logs / launches, .error = error};
    run.times.compute_ns += total_ns;
  }
  run.times.idle_host_ns = run.times.compute_ns / 10;
  run.times.span_ns = run.times.compute_ns + run.times.idle_host_ns;
  return run;
}

inline Comparison CompareTwo(Run a, Run b, const Options& options) {
  return Compare(Runs{std::move(a)}, Runs{std::move(b)}, options);
}

// Runs of programs whose kernels have other names, as on GPUs of two makers.
inline compare::Run MakeOther(const MadeRun& made, uint64_t seed) {
  compare::Run run = Make(made, seed);
  Kernels renamed;
  for (auto& [name, kernel] : run.kernels) renamed["other_" + name] = std::move(kernel);
  run.kernels = std::move(renamed);
  return run;
}

}  // namespace gpusonde::compare
