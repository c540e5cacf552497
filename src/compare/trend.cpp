// SPDX-License-Identifier: Apache-2.0
#include "compare/trend.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <span>
#include <utility>

#include "analyze/stats/inference.h"
#include "compare/between_runs.h"
#include "compare/change_points.h"
#include "compare/work.h"

namespace gpusonde::compare {
namespace {

constexpr double kTailOfInterval = 0.025;  // of each side

// Whether it sorted them.
bool SortByStart(std::vector<Run>& runs) {
  std::set<int64_t> starts;
  for (const Run& run : runs)
    if (run.start_ns.has_value()) starts.insert(*run.start_ns);
  if (starts.size() < runs.size()) return false;
  std::ranges::sort(runs, {}, [](const Run& run) { return *run.start_ns; });
  return true;
}

using Values = std::vector<std::optional<double>>;

class Follower {
 public:
  Follower(const std::vector<Run>& runs, const Run& together) : runs_(runs), together_(together) {}

  std::vector<Series> Follow(std::span<const std::optional<double>> work) {
    AddWhole(SeriesKind::kPace, [&](size_t run) {
      return work[run].has_value() ? std::optional(runs_[run].times.span_ns / *work[run]) : std::nullopt;
    });
    AddWhole(SeriesKind::kStep, [&](size_t run) { return runs_[run].step_ns; });
    AddNamed(&Run::kernels, SeriesKind::kKernel);
    AddNamed(&Run::phases, SeriesKind::kPhase);
    return std::move(series_);
  }

 private:
  template <class ValueOf>
  void AddWhole(SeriesKind kind, const ValueOf& value_of) {
    Values values;
    for (size_t i = 0; i < runs_.size(); ++i) values.push_back(value_of(i));
    Add({.kind = kind, .values_ns = std::move(values)});
  }

  // Kernels or phases, and all kernels together.
  void AddNamed(Kernels Run::* which, SeriesKind kind) {
    const Kernels& together = together_.*which;
    std::vector<std::pair<int64_t, std::string>> by_time;
    for (const auto& [name, kernel] : together)
      if (!kernel.communication) by_time.emplace_back(-kernel.amount.total_ns, name);
    std::ranges::sort(by_time);
    Deviations all(runs_.size());
    double all_ns = 0;
    std::vector<Series> series;
    for (const auto& [negative_ns, name] : by_time) {
      const Kernel& kernel = together.at(name);
      const Deviations mine = DeviationsOf(runs_, which, name, kernel,
                                           [&](uint32_t shape) { return kernel.groups.at(shape).total_ns; });
      const double mean_ns = static_cast<double>(-negative_ns) / Count();
      all_ns += mean_ns;
      series.push_back({.kind = kind, .name = name, .values_ns = ValuesOf(mine, mean_ns)});
      for (size_t i = 0; i < mine.size(); ++i)
        if (const auto& value = series.back().values_ns[i]; value.has_value())
          all[i].Add({.usual_ns = mean_ns, .taken_ns = *value});
    }
    if (kind == SeriesKind::kKernel) Add({.kind = SeriesKind::kDuration, .values_ns = ValuesOf(all, all_ns)});
    for (Series& one : series) Add(std::move(one));
  }

  // Values as the deviations, which are `mean_ns` on average.
  static Values ValuesOf(const Deviations& deviations, double mean_ns) {
    double sum = 0, known = 0;
    for (const Deviation& one : deviations) {
      if (!one.known()) continue;
      sum += one.ratio();
      ++known;
    }
    Values values;
    for (const Deviation& one : deviations)
      values.push_back(one.known() ? std::optional(mean_ns * one.ratio() * known / sum) : std::nullopt);
    return values;
  }

  double Count() const { return static_cast<double>(runs_.size()); }

  void Add(Series series) {
    const auto known = std::ranges::count_if(
        series.values_ns, [](const std::optional<double>& value) { return value.has_value() && *value > 0; });
    if (static_cast<size_t>(known) >= kMinTrendRuns) series_.push_back(std::move(series));
  }

  const std::vector<Run>& runs_;
  const Run& together_;
  std::vector<Series> series_;
};

// A stretch of a series that may have a change.
struct Segment {
  size_t series = 0;
  std::vector<size_t> runs;    // those with a value
  std::vector<double> values;  // their logarithms
};

Segment Whole(const std::vector<Series>& series, size_t index) {
  Segment segment{.series = index};
  const Values& values = series[index].values_ns;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].has_value() || *values[i] <= 0) continue;
    segment.runs.push_back(i);
    segment.values.push_back(std::log(*values[i]));
  }
  return segment;
}

Segment PartOf(const Segment& segment, size_t from, size_t to) {
  Segment part{.series = segment.series};
  for (size_t i = from; i < to; ++i) {
    part.runs.push_back(segment.runs[i]);
    part.values.push_back(segment.values[i]);
  }
  return part;
}

// Tests segments of all series, then the parts of those that have a change, until there are none. Changes
// have their p only.
void FindChanges(std::vector<Series>& series, const Options& options) {
  const double margin = std::log1p(options.min_change);
  std::vector<Segment> segments;
  for (size_t i = 0; i < series.size(); ++i) segments.push_back(Whole(series, i));
  while (!segments.empty()) {
    std::vector<std::pair<Segment, Stretch>> tested;
    std::vector<double> p;
    for (Segment& segment : segments) {
      const std::optional<Stretch> stretch = FindStretch(segment.values, margin);
      if (!stretch.has_value()) continue;
      p.push_back(stretch->p);
      tested.emplace_back(std::move(segment), *stretch);
    }
    segments.clear();
    const std::vector<bool> significant = analyze::Significant(p);
    for (size_t i = 0; i < tested.size(); ++i) {
      if (!significant[i]) continue;
      const auto& [segment, stretch] = tested[i];
      size_t begin = 0;
      for (const size_t end : {stretch.from, stretch.to, segment.values.size()}) {
        if (begin > 0 && begin < segment.values.size())
          series[segment.series].changes.push_back({.run = segment.runs[begin], .p = stretch.p});
        if (begin < end) segments.push_back(PartOf(segment, begin, end));
        begin = end;
      }
    }
  }
}

// Compares the stretches up to the neighbours of each change.
void MeasureChanges(std::vector<Series>& series) {
  for (size_t index = 0; index < series.size(); ++index) {
    std::vector<ChangePoint>& changes = series[index].changes;
    if (changes.empty()) continue;
    std::ranges::sort(changes, {}, &ChangePoint::run);
    const Segment whole = Whole(series, index);
    std::vector<size_t> places;
    for (const ChangePoint& change : changes)
      places.push_back(
          static_cast<size_t>(std::ranges::lower_bound(whole.runs, change.run) - whole.runs.begin()));
    for (size_t i = 0; i < changes.size(); ++i) {
      const size_t from = i == 0 ? 0 : places[i - 1];
      const size_t to = i + 1 == places.size() ? whole.values.size() : places[i + 1];
      const Segment part = PartOf(whole, from, to);
      const Stretch behind = MeasureStretch(part.values, places[i] - from, part.values.size());
      const double half = StudentQuantile(kTailOfInterval, behind.freedom) * behind.error;
      double before = 0;
      for (size_t run = from; run < places[i]; ++run)
        before += whole.values[run] / static_cast<double>(places[i] - from);
      changes[i].ratio = std::exp(behind.difference);
      changes[i].low = std::exp(behind.difference - half);
      changes[i].high = std::exp(behind.difference + half);
      changes[i].before_ns = std::exp(before);
      changes[i].after_ns = std::exp(before + behind.difference);
    }
  }
}

}  // namespace

std::string_view Name(SeriesKind kind) {
  constexpr std::string_view kNames[] = {"pace", "step", "duration", "kernel", "phase"};
  return kNames[static_cast<size_t>(kind)];
}

Trend FollowRuns(std::vector<Run> runs, const Options& options) {
  Trend trend;
  trend.by_start = SortByStart(runs);
  const Side all(std::move(runs));
  std::vector<std::optional<double>> work;
  for (const Run& run : all.runs) {
    work.push_back(WorkOf(all.together, run));
    if (work.back().has_value()) *work.back() *= static_cast<double>(all.runs.size());
    trend.runs.push_back({.paths = run.paths,
                          .ranks = run.ranks,
                          .start_ns = run.start_ns,
                          .work = work.back(),
                          .notes = run.notes});
  }
  trend.series = Follower(all.runs, all.together).Follow(work);
  FindChanges(trend.series, options);
  MeasureChanges(trend.series);
  return trend;
}

std::vector<std::string_view> NamesIn(const Trend& trend) {
  std::vector<std::string_view> names;
  for (const Series& series : trend.series)
    if (!series.name.empty()) names.emplace_back(series.name);
  return names;
}

}  // namespace gpusonde::compare
