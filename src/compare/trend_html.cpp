// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analyze/report/html/writer.h"
#include "analyze/report/quantities.h"
#include "base/html.h"
#include "base/printable.h"
#include "base/time.h"
#include "compare/trend.h"
#include "model/short_names.h"

namespace gpusonde::compare {
namespace {

constexpr size_t kSeriesShown = 60, kRunsShown = 500;
constexpr size_t kMaxShownPath = 500;  // bytes
// The axis of a chart covers this share around the mean at least, so that noise stays small.
constexpr double kMinAxis = 0.05;

std::string ShownTime(const std::optional<double>& ns) {
  return ns.has_value() ? analyze::Time(std::llround(*ns)) : "–";
}

// A mark for each run, and a line at the mean between changes.
std::string ChartOf(const Series& series) {
  constexpr double kHeight = 100, kWidthOfRun = 10;
  double low = 0, high = 0, mean = 0, count = 0;
  for (const std::optional<double>& value : series.values_ns) {
    if (!value.has_value()) continue;
    low = count == 0 ? *value : std::min(low, *value);
    high = std::max(high, *value);
    mean += *value;
    ++count;
  }
  mean /= std::max(1., count);
  low = std::min(low, mean * (1 - kMinAxis));
  high = std::max(high, mean * (1 + kMinAxis));
  const auto y = [&](double value) { return (1 - (value - low) / (high - low)) * (kHeight - 12) + 6; };
  std::string marks;
  const auto line = [&](size_t from, size_t to, double value) {
    marks += fmt::format("<rect class=mark x={:.0f} y={:.1f} width={:.0f} height=2 />",
                         kWidthOfRun * static_cast<double>(from), y(value) - 1,
                         kWidthOfRun * static_cast<double>(to - from));
  };
  for (size_t i = 0; i < series.changes.size(); ++i) {
    const ChangePoint& change = series.changes[i];
    if (i == 0) line(0, change.run, change.before_ns);
    line(change.run, i + 1 < series.changes.size() ? series.changes[i + 1].run : series.values_ns.size(),
         change.after_ns);
  }
  for (size_t i = 0; i < series.values_ns.size(); ++i)
    if (series.values_ns[i].has_value())
      marks += fmt::format("<rect class=value x={:.0f} y={:.1f} width=6 height=6 />",
                           kWidthOfRun * static_cast<double>(i) + 2, y(*series.values_ns[i]) - 3);
  return fmt::format(
      "<svg class=histogram viewBox=\"0 0 {:.0f} {:.0f}\" preserveAspectRatio=none aria-hidden=true>{}</svg>",
      kWidthOfRun * static_cast<double>(series.values_ns.size()), kHeight, marks);
}

class TrendPage {
 public:
  explicit TrendPage(const Trend& trend) : trend_(trend), shown_(NamesIn(trend)) {}

  std::string Write() {
    html_.BeginPage(
        fmt::format("Trend over {} runs", trend_.runs.size()),
        fmt::format("By gpusonde; runs in the order of their {}.", trend_.by_start ? "starts" : "names"));
    html_.Section("Findings");
    html_.RawText("<ul>\n");
    for (const std::string& sentence : SentencesOf(trend_))
      html_.Raw("<li>{}</li>\n", SentenceHtml(sentence));
    html_.RawText("</ul>\n");
    html_.EndSection();
    AllSeries();
    Runs();
    html_.EndPage();
    return html_.Take();
  }

 private:
  std::string NameOf(const Series& series) const {
    switch (series.kind) {
      case SeriesKind::kPace:
        return "time for equal work";
      case SeriesKind::kStep:
        return "median step";
      case SeriesKind::kDuration:
        return "all kernels";
      case SeriesKind::kKernel:
        return shown_(series.name);
      case SeriesKind::kPhase:
        return "phase " + shown_(series.name);
    }
    return "";
  }

  // Those with changes first.
  void AllSeries() {
    std::vector<const Series*> order;
    for (const Series& series : trend_.series) order.push_back(&series);
    std::ranges::stable_sort(
        order, {}, [](const Series* series) { return !series->name.empty() && series->changes.empty(); });
    const size_t rows = std::min(order.size(), kSeriesShown);
    html_.Section(
        "Over the runs",
        "Times for an average run's work; of kernels by their launches of equal shapes. A mark is a run, a "
        "line the mean between changes; axes cover 5 % around the mean at least, and don't begin at 0.");
    html_.Table("What changed first, then the longest", {"name", "", "#first", "#last", "changes"});
    for (const Series* const series : std::span(order).first(rows)) {
      html_.Row();
      html_.Name(NameOf(*series), series->name);
      html_.RawCell(ChartOf(*series));
      html_.Figure(ShownTime(series->values_ns.front()));
      html_.Figure(ShownTime(series->values_ns.back()));
      std::string changes;
      for (const ChangePoint& change : series->changes)
        changes += fmt::format("{}run {}: {}", changes.empty() ? "" : ", ", change.run + 1,
                               analyze::Longer(change.ratio));
      html_.Cell(changes.empty() ? "–" : changes);
      html_.EndRow();
    }
    html_.EndTable(order.size() - rows);
    html_.EndSection();
  }

  void Runs() {
    const size_t rows = std::min(trend_.runs.size(), kRunsShown);
    html_.Section("Runs");
    html_.Table("Work is relative to an average run's", {"#run", "start", "path", "#ranks", "#work"});
    for (size_t i = 0; i < rows; ++i) {
      const TrendRun& run = trend_.runs[i];
      html_.Row();
      html_.Figure(fmt::format("{}", i + 1));
      html_.Cell(run.start_ns.has_value() ? FormatUtc(*run.start_ns) : "–");
      html_.Name(Shorten(Printable(run.paths.front()), kMaxShownPath), run.paths.front());
      html_.Figure(fmt::format("{}", run.ranks));
      html_.Figure(run.work.has_value() ? fmt::format("{:.3f}", *run.work) : "–");
      html_.EndRow();
    }
    html_.EndTable(trend_.runs.size() - rows);
    html_.EndSection();
  }

  const Trend& trend_;
  model::ShortNames shown_;
  analyze::HtmlWriter html_;
};

}  // namespace

std::string ToHtml(const Trend& trend) { return TrendPage(trend).Write(); }

}  // namespace gpusonde::compare
