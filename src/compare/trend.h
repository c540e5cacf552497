// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/comparison.h"
#include "compare/run.h"

namespace gpusonde::compare {

// Runs of a program over time, such as one a night or one a commit.

// A change between two runs, which holds until the next change or the last run.
struct ChangePoint {
  size_t run = 0;  // the first with the change
  double ratio = 1;
  double low = 1;  // 95 % interval, as if the place were known
  double high = 1;
  double p = 1;
  double before_ns = 0, after_ns = 0;  // geometric means of a run
  double cost_ns() const { return after_ns - before_ns; }
};

enum class SeriesKind : uint8_t { kPace, kStep, kDuration, kKernel, kPhase };
std::string_view Name(SeriesKind kind);  // as in the JSON: "pace"

// What is followed over the runs.
struct Series {
  SeriesKind kind = SeriesKind::kPace;
  std::string name;                              // of kernels and phases
  std::vector<std::optional<double>> values_ns;  // by run, for an average run's work; of steps the median
  std::vector<ChangePoint> changes;              // by run
};

struct TrendRun {
  std::vector<std::string> paths;
  int64_t ranks = 0;
  std::optional<int64_t> start_ns;  // since the Unix epoch
  std::optional<double> work;       // as a multiple of an average run's
  std::vector<std::string> notes;
};

struct Trend {
  bool by_start = false;  // runs are in the order of their starts, else in that of their names
  std::vector<TrendRun> runs;
  std::vector<Series> series;  // pace, step and duration where known, then kernels and phases by time
};

inline constexpr size_t kMinTrendRuns = 4;

// Follows runs, at least kMinTrendRuns: the time for an equal amount of work, that of a step, the durations
// of all kernels and of each, of launches of equal shapes. Changes are found one after the other (binary
// segmentation) by FindStretch; of those found at one depth in all series, 5 % are false on average at most
// (Benjamini and Hochberg). Runs are sorted by start if all are known and different. Pure.
Trend FollowRuns(std::vector<Run> runs, const Options& options);

std::vector<std::string_view> NamesIn(const Trend& trend);

// As those of a Comparison.
std::string ToText(const Trend& trend);
std::vector<std::string> SentencesOf(const Trend& trend);
std::string ToHtml(const Trend& trend);
std::string ToJson(const Trend& trend);

}  // namespace gpusonde::compare
