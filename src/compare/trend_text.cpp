// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/report/quantities.h"
#include "base/counted.h"
#include "base/printable.h"
#include "base/time.h"
#include "compare/trend.h"
#include "model/short_names.h"

namespace gpusonde::compare {
namespace {

constexpr size_t kMaxTrendSentences = 20;

std::string TrendTime(double ns) { return analyze::Time(std::llround(ns)); }

std::string NameOfRun(const TrendRun& run) {
  std::string name = Printable(run.paths.front());
  if (run.paths.size() > 1) name += fmt::format(" and {} more", run.paths.size() - 1);
  return name;
}

class TrendWriter {
 public:
  explicit TrendWriter(const Trend& trend) : trend_(trend), shown_(NamesIn(trend)) {}

  std::vector<std::string> Sentences() {
    Changes();
    Steadiness();
    return std::move(sentences_);
  }

 private:
  template <class... Args>
  void Say(fmt::format_string<Args...> format, Args&&... args) {
    sentences_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  // In order of the runs that brought them; of one run, totals first and then what costs most.
  void Changes() {
    struct Found {
      const Series* series;
      const ChangePoint* change;
    };
    std::vector<Found> found;
    for (const Series& series : trend_.series)
      for (const ChangePoint& change : series.changes) found.push_back({&series, &change});
    std::ranges::sort(found, {}, [](const Found& one) {
      const bool is_named = !one.series->name.empty();
      return std::tuple(one.change->run, one.series->kind, is_named ? -std::abs(one.change->cost_ns()) : 0.,
                        one.series->name);
    });
    for (size_t i = 0; i < std::min(found.size(), kMaxTrendSentences); ++i)
      Sentence(*found[i].series, *found[i].change);
    if (found.size() > kMaxTrendSentences)
      Say("{} more changes are in the table.", found.size() - kMaxTrendSentences);
  }

  void Sentence(const Series& series, const ChangePoint& change) {
    const std::string much =
        fmt::format("{} {}", analyze::Longer(change.ratio < 1 ? 2 - change.ratio : change.ratio).substr(1),
                    change.ratio > 1 ? "longer" : "less");
    Say("From run {} on ({}), {} {} (95 % interval: {} to {}): {}{} a {}.", change.run + 1,
        NameOfRun(trend_.runs[change.run]), What(series), much, analyze::Longer(change.low),
        analyze::Longer(change.high), change.cost_ns() > 0 ? "+" : "", TrendTime(change.cost_ns()),
        series.kind == SeriesKind::kStep ? "step" : "run");
  }

  std::string What(const Series& series) const {
    switch (series.kind) {
      case SeriesKind::kPace:
        return "equal work takes";
      case SeriesKind::kStep:
        return "the median step takes";
      case SeriesKind::kDuration:
        return "all kernels together take";
      case SeriesKind::kKernel:
        return shown_(series.name) + " takes";
      case SeriesKind::kPhase:
        return "phase " + shown_(series.name) + " takes";
    }
    return "";
  }

  void Steadiness() {
    const auto changed =
        std::ranges::count_if(trend_.series, [](const Series& series) { return !series.changes.empty(); });
    const auto tested = static_cast<int64_t>(trend_.series.size());
    const std::string runs = Counted(static_cast<int64_t>(trend_.runs.size()), "run");
    if (changed == 0)
      Say("Nothing changed over {}, of {} things that could be followed.", runs, tested);
    else
      Say("{} of {} things that could be followed over {} changed.", changed, tested, runs);
    if (trend_.series.empty() || trend_.series.front().kind != SeriesKind::kPace)
      Say("The runs differ too much in the kernels they launched to tell how much work each did.");
    Say("A change in the last run alone can't be told from one slow run.");
  }

  const Trend& trend_;
  model::ShortNames shown_;
  std::vector<std::string> sentences_;
};

}  // namespace

std::vector<std::string> SentencesOf(const Trend& trend) { return TrendWriter(trend).Sentences(); }

std::string ToText(const Trend& trend) {
  std::string text;
  const auto print = [&text]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  };
  for (const std::string& sentence : SentencesOf(trend)) print("- {}", sentence);
  print("\n{}, in the order of their {}; times for an average run's work",
        Counted(static_cast<int64_t>(trend.runs.size()), "run"), trend.by_start ? "starts" : "names");
  const auto value_of = [&trend](SeriesKind kind, size_t run) -> std::string {
    for (const Series& series : trend.series)
      if (series.kind == kind && series.values_ns[run].has_value()) return TrendTime(*series.values_ns[run]);
    return "–";
  };
  print("{:>4} {:>20} {:>12} {:>12} {:>12}  {}", "run", "start", "time", "median step", "kernels", "name");
  for (size_t i = 0; i < trend.runs.size(); ++i) {
    const TrendRun& run = trend.runs[i];
    print("{:>4} {:>20} {:>12} {:>12} {:>12}  {}", i + 1,
          run.start_ns.has_value() ? FormatUtc(*run.start_ns / 1'000'000'000 * 1'000'000'000) : "–",
          value_of(SeriesKind::kPace, i), value_of(SeriesKind::kStep, i), value_of(SeriesKind::kDuration, i),
          NameOfRun(run));
    for (const std::string& note : run.notes) print("     Note: {}.", Printable(note));
  }
  return text;
}

}  // namespace gpusonde::compare
