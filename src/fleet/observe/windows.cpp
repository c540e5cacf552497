// SPDX-License-Identifier: Apache-2.0
#include "fleet/observe/windows.h"

#include <algorithm>

#include "base/id128.h"
#include "base/saturated.h"
#include "base/time.h"

namespace gpusonde::fleet {

WindowChooser::WindowChooser(int64_t total, const SampleSize& size, uint64_t seed) {
  const double each = static_cast<double>(total) / static_cast<double>(size.windows);
  const double length = static_cast<double>(size.operations) / static_cast<double>(size.windows);
  for (int64_t i = 0; i < size.windows; ++i) {
    const Id128 drawn = IdHasher("fleet window").Add(seed).Add(static_cast<uint64_t>(i)).Finish();
    const double unit = static_cast<double>(drawn.low >> 11) * 0x1p-53;
    const double begin = static_cast<double>(i) * each + unit * (each - length);
    edges_.push_back(begin);
    edges_.push_back(begin + length);
  }
}

void WindowChooser::Add(int64_t second_ns, int64_t count) {
  const auto operations = static_cast<double>(count);
  while (times_ns_.size() < edges_.size() && edges_[times_ns_.size()] <= before_ + operations) {
    const double share = (edges_[times_ns_.size()] - before_) / operations;
    times_ns_.push_back(AddSaturated(second_ns, static_cast<int64_t>(share * kNanosPerSecond)));
  }
  before_ += operations;
  until_ns_ = AddSaturated(second_ns, kNanosPerSecond);
}

std::vector<TimeRange> WindowChooser::Finish() {
  if (times_ns_.size() % 2 == 1) times_ns_.push_back(until_ns_);
  std::vector<TimeRange> windows;
  for (size_t i = 0; i < times_ns_.size(); i += 2) {
    const int64_t from_ns = windows.empty() ? times_ns_[i] : std::max(times_ns_[i], windows.back().to_ns);
    if (from_ns < times_ns_[i + 1]) windows.push_back({from_ns, times_ns_[i + 1]});
  }
  return windows;
}

}  // namespace gpusonde::fleet
