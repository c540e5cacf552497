// SPDX-License-Identifier: Apache-2.0
#include "fleet/observe/windows.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "base/testing/units.h"

namespace gpusonde::fleet {
namespace {

using Seconds = std::map<int64_t, int64_t>;  // operations that start in each

std::vector<TimeRange> Choose(const Seconds& seconds, const SampleSize& size, uint64_t seed = 1) {
  int64_t total = 0;
  for (const auto& [second, count] : seconds) total += count;
  WindowChooser chooser(total, size, seed);
  for (const auto& [second, count] : seconds) chooser.Add(second * kSecond, count);
  return chooser.Finish();
}

// How many operations lie in the windows, if those of a second are spread evenly.
double Chosen(const Seconds& seconds, const std::vector<TimeRange>& windows) {
  double chosen = 0;
  for (const auto& [second, count] : seconds)
    for (const TimeRange& window : windows) {
      const int64_t from_ns = std::max(window.from_ns, second * kSecond);
      const int64_t to_ns = std::min(window.to_ns, (second + 1) * kSecond);
      if (from_ns < to_ns)
        chosen += static_cast<double>(count) * static_cast<double>(to_ns - from_ns) / kSecond;
    }
  return chosen;
}

Seconds Steady(int64_t from, int64_t to, int64_t count) {
  Seconds seconds;
  for (int64_t second = from; second < to; ++second) seconds[second] = count;
  return seconds;
}

TEST(WindowChooser, TakesAsManyOperationsAsAskedInAsManyWindows) {
  const SampleSize size;
  for (const Seconds& seconds : {Steady(100, 3700, 10'000), Steady(0, 7, 1'000'000), Steady(5, 2'000, 60)}) {
    const auto windows = Choose(seconds, size);
    EXPECT_EQ(windows.size(), 50u);
    EXPECT_NEAR(Chosen(seconds, windows), 100'000, 1);
    for (size_t i = 1; i < windows.size(); ++i) EXPECT_LE(windows[i - 1].to_ns, windows[i].from_ns);
  }
}

TEST(WindowChooser, WorkInAFewSecondsOfManyIsChosenByItsShare) {
  Seconds seconds = Steady(0, 3600, 1);  // a sign of life
  seconds[1800] = seconds[1801] = 500'000;
  const auto windows = Choose(seconds, {});
  EXPECT_NEAR(Chosen({{1800, 500'000}, {1801, 500'000}}, windows), 100'000.0 * 1'000'000 / 1'003'598, 2'100);
  // Where two lone bursts are a year apart, both are.
  const int64_t year = int64_t{365} * 86'400;
  const Seconds bursts{{10, 200'000}, {10 + year, 200'000}};
  const auto both = Choose(bursts, {});
  EXPECT_NEAR(Chosen({{10, 200'000}}, both), 50'000, 1);
  EXPECT_NEAR(Chosen({{10 + year, 200'000}}, both), 50'000, 1);
}

TEST(WindowChooser, EachOperationHasAboutTheSameChance) {
  const Seconds seconds = Steady(0, 1000, 10);
  const SampleSize size{.operations = 1000, .windows = 10};
  std::vector<double> by_tenth(10);
  constexpr int kSeeds = 2000;
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    for (const TimeRange& window : Choose(seconds, size, seed))
      by_tenth[static_cast<size_t>(window.from_ns / (100 * kSecond))] += 1;
  for (const double windows : by_tenth) EXPECT_EQ(windows, kSeeds) << "one in each stratum";
  // Within a stratum of 100 s, whose windows are of 10 s.
  std::vector<double> covered(10);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const TimeRange first = Choose(seconds, size, seed).front();
    for (int64_t part = 0; part < 10; ++part)
      covered[static_cast<size_t>(part)] +=
          Chosen(Steady(10 * part, 10 * part + 10, 10), {first}) / (100.0 * kSeeds);
  }
  for (size_t part = 1; part < 9; ++part) EXPECT_NEAR(covered[part], 0.111, 0.02) << part;
  EXPECT_GT(covered.front(), 0.03) << "less at the edges of a stratum";
  EXPECT_GT(covered.back(), 0.03);
}

TEST(WindowChooser, TheSeedDecides) {
  const Seconds seconds = Steady(0, 100, 10'000);
  const auto from = [&](uint64_t seed) { return Choose(seconds, {}, seed).front().from_ns; };
  EXPECT_EQ(from(3), from(3));
  EXPECT_NE(from(3), from(4));
}

TEST(WindowChooser, FewerOperationsThanCountedLeaveWindowsOut) {
  WindowChooser chooser(1'000'000, {}, 1);
  chooser.Add(0, 250'000);
  const auto windows = chooser.Finish();
  EXPECT_GE(windows.size(), 12u);
  EXPECT_LE(windows.size(), 13u);
  EXPECT_LE(windows.back().to_ns, kSecond);
  EXPECT_TRUE(WindowChooser(1'000'000, {}, 1).Finish().empty());
}

TEST(WindowChooser, TimesEndWhereNumbersDo) {
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  const Seconds last{{kLast / kSecond, 10}};
  const auto windows = Choose(last, {.operations = 9, .windows = 3});
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_GE(windows.front().from_ns, kLast / kSecond * kSecond);
  EXPECT_EQ(windows.back().to_ns, kLast);
}

}  // namespace
}  // namespace gpusonde::fleet
