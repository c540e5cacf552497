// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "analyze/report/html/charts.h"
#include "analyze/report/html/sections.h"
#include "analyze/report/quantities.h"
#include "base/counted.h"
#include "base/html.h"
#include "base/saturated.h"

namespace gpusonde::analyze {
namespace {

constexpr size_t kDistributions = 12;

}  // namespace

void WriteKernels(HtmlWriter& html, const Report& report, const model::ShortNames& shown) {
  if (report.kernels.empty()) return;
  html.Section("Kernels");
  int64_t whole_ns = 0;
  for (const DurationLine& line : report.kernels) whole_ns = AddSaturated(whole_ns, line.total_ns);
  const size_t rows = std::min(report.kernels.size(), kMaxRows);
  html.Table("Kernels by their time",
             {"name", "#total", "#share", "#count", "#mean", "#p50", "#p90", "#p99", "#max", "#outliers"});
  for (size_t i = 0; i < rows; ++i) {
    const DurationLine& line = report.kernels[i];
    html.Row();
    html.Name(shown(line.name), line.name);
    html.Figure(Time(line.total_ns));
    html.Figure(Percent(line.total_ns, whole_ns));
    html.Figure(fmt::format("{}", line.count));
    for (const int64_t ns : {line.mean_ns, line.p50_ns, line.p90_ns, line.p99_ns, line.max_ns})
      html.Figure(Time(ns));
    html.Figure(fmt::format("{}", line.outliers));
    html.EndRow();
  }
  html.EndTable(report.kernels.size() - rows);
  html.EndSection();
  html.Section("How their durations are distributed",
               "Number of kernels by duration, on a logarithmic scale from the shortest to the longest.");
  html.RawText("<div class=shapes>\n");
  // Both lists begin with the same kernels.
  for (size_t i = 0; i < std::min({report.distributions.size(), rows, kDistributions}); ++i) {
    const DurationLine& line = report.kernels[i];
    html.Raw("<figure><figcaption>{}<br><span class=dim><span class=figure>{}</span>",
             EscapedHtml(shown(line.name)), EscapedHtml(Counted(line.count, "kernel")));
    for (const auto& [label, ns] :
         {std::pair("p50", line.p50_ns), std::pair("p90", line.p90_ns), std::pair("p99", line.p99_ns)})
      html.Raw(", <span class=figure>{} {}</span>", label, Time(ns));
    html.Raw("</span></figcaption>{}<div class=axis><span>{}</span><span>{}</span></div></figure>\n",
             Histogram(report.distributions[i].bins), Time(line.min_ns), Time(line.max_ns));
  }
  html.RawText("</div>\n");
  html.EndSection();
}

void WriteVariability(HtmlWriter& html, const Report& report, const model::ShortNames& shown) {
  if (report.variability.empty()) return;
  html.Section(
      "Which kernels vary",
      "Excess: time beyond as many kernels of typical duration, by rank and launch shape. The shares "
      "of the variance say what explains it. Communication kernels also vary because they wait for "
      "other ranks.");
  const size_t rows = std::min(report.variability.size(), kMaxRows);
  const int64_t most_ns = std::max<int64_t>(1, report.variability[0].excess_ns);
  html.Table("Kernels by the time that they lose to variation",
             {"name", "#excess", "#count", "#robust CV", "#outliers", "#time", "#rank", "#stream", "#shape",
              "#slowest"});
  for (size_t i = 0; i < rows; ++i) {
    const VariabilityLine& line = report.variability[i];
    const BarPart part{.style = line.communication ? "comm" : "compute", .length = line.excess_ns};
    html.Row();
    html.Name(shown(line.name), line.name);
    html.Raw("<td class=n>{}{}</td>", Time(line.excess_ns), Bar(std::span(&part, 1), most_ns));
    html.Figure(fmt::format("{}", line.count));
    html.Figure(fmt::format("{:.1f} %", 100 * line.robust_cv));
    html.Figure(fmt::format("{}", line.outliers));
    for (const double share :
         {line.explained.time, line.explained.rank, line.explained.stream, line.explained.shape})
      html.Figure(fmt::format("{:.0f} %", 100 * share));
    if (line.slowest.empty()) {
      html.Figure("–");
    } else {
      const SlowLine& slowest = line.slowest[0];
      html.Raw("<td class=n>{}<br><span class=dim>rank {} at {}</span></td>", Time(slowest.duration_ns),
               slowest.rank, Time(slowest.start_ns));
    }
    html.EndRow();
  }
  html.EndTable(report.variability.size() - rows);
  html.EndSection();
}

void WriteCopyEffects(HtmlWriter& html, const Report& report, const model::ShortNames& shown) {
  if (report.copy_effects.empty()) return;
  html.Section("Kernels beside and right after copies",
               "How much longer kernels take than the same ones without a copy, with the 95 % interval: an "
               "association, not necessarily caused by the copies.");
  const size_t rows = std::min(report.copy_effects.size(), kMaxRows);
  double from = 1, to = 1;
  for (size_t i = 0; i < rows; ++i) {
    from = std::min(from, report.copy_effects[i].low);
    to = std::max(to, report.copy_effects[i].high);
  }
  html.Table(fmt::format("Effects by their time; the axis goes from {} to {}, no effect is marked",
                         Longer(from), Longer(to)),
             {"name", "copies", "", "#effect", "#95 % interval", "#kernels", "#in total"});
  for (size_t i = 0; i < rows; ++i) {
    const CopyEffectLine& line = report.copy_effects[i];
    html.Row();
    html.Name(shown(line.name), line.name);
    std::string copies = line.after ? "right after" : "beside";
    if (line.any_copy)
      copies += " any";
    else
      copies += fmt::format(" {}, {}, {}", line.copy_kind, line.memory, line.size);
    html.Cell(copies);
    html.RawCell(Interval(line.low, line.ratio, line.high, from, to, 1));
    html.Figure(Longer(line.ratio));
    html.Figure(fmt::format("{} to {}", Longer(line.low), Longer(line.high)));
    html.Figure(fmt::format("{}", line.count));
    html.Figure(Time(line.excess_ns));
    html.EndRow();
  }
  html.EndTable(report.copy_effects.size() - rows);
  html.EndSection();
}

}  // namespace gpusonde::analyze
