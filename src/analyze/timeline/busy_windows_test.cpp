// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/busy_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace gpusonde::analyze {
namespace {

TEST(BusyWindows, EachWindowHoldsTheNanosecondsInWhichSomethingRan) {
  constexpr int64_t kFirst = 1'000;
  std::mt19937 random(7);
  for (const int64_t span : {5, 127, 128, 1'000, 12'345}) {
    std::vector<std::pair<int64_t, int64_t>> events = {{kFirst, kFirst}, {kFirst + span - 1, kFirst + span}};
    for (int i = 0; i < 60; ++i) {
      const auto start = static_cast<int64_t>(random() % static_cast<uint32_t>(span));
      const auto length = static_cast<int64_t>(random() % static_cast<uint32_t>(span / 4 + 1));
      events.emplace_back(kFirst + start, kFirst + std::min(span, start + length));
    }
    std::ranges::sort(events);
    BusyWindows windows(kFirst, kFirst + span);
    std::vector<bool> covered(static_cast<size_t>(span));
    for (const auto& [start, end] : events) {
      windows.Add(start, end);
      std::fill(covered.begin() + start - kFirst, covered.begin() + end - kFirst, true);
    }
    const std::vector<int64_t> busy = windows.Finish();
    ASSERT_EQ(busy.size(), kWindows);
    for (int64_t i = 0; i < int64_t{kWindows}; ++i)
      EXPECT_EQ(busy[static_cast<size_t>(i)],
                std::count(covered.begin() + span * i / int64_t{kWindows},
                           covered.begin() + span * (i + 1) / int64_t{kWindows}, true))
          << "window " << i << " of a span of " << span;
  }
}

}  // namespace
}  // namespace gpusonde::analyze
