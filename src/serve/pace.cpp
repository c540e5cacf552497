// SPDX-License-Identifier: Apache-2.0
#include "serve/pace.h"

#include <algorithm>

#include "base/time.h"

namespace gpusonde::serve {
namespace {

constexpr double kWeight = 0.02;  // of a commit in the mean
constexpr double kShare = 0.25;   // of the CPUs' time

}  // namespace

void Pace::Add(int64_t commit_ns) {
  const std::scoped_lock lock(mutex_);
  const auto ns = static_cast<double>(commit_ns);
  mean_ns_ = mean_ns_ == 0 ? ns : mean_ns_ + kWeight * (ns - mean_ns_);
}

int64_t Pace::PauseMs(size_t agents) const {
  const std::scoped_lock lock(mutex_);
  const double pause_ms =
      static_cast<double>(agents) * mean_ns_ / static_cast<double>(kNanosPerMilli) / (kShare * cpus_);
  return static_cast<int64_t>(
      std::clamp(pause_ms, static_cast<double>(kMinPauseMs), static_cast<double>(kMaxPauseMs)));
}

}  // namespace gpusonde::serve
