// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/critical_paths.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/report/html/sections.h"
#include "analyze/report/quantities.h"

namespace gpusonde::analyze {
namespace {

constexpr size_t kMaxPathParts = 10;

void WritePath(HtmlWriter& html, const CriticalPathLine& path, const model::ShortNames& shown) {
  const size_t rows = std::min(path.parts.size(), kMaxPathParts);
  html.Table(fmt::format("Largest parts of the path of step {} of rank {}", path.number, path.rank),
             {"part", "#time", "#share", "#times"});
  for (size_t i = 0; i < rows; ++i) {
    const CriticalPathLine::Part& part = path.parts[i];
    html.Row();
    html.Cell(PathPartText(part, shown));
    html.Figure(Time(part.total_ns));
    html.Figure(Percent(part.total_ns, path.end_ns - path.begin_ns));
    html.Figure(fmt::format("{}", part.count));
    html.EndRow();
  }
  html.EndTable(path.parts.size() - rows);
}

}  // namespace

void WriteCriticalPaths(HtmlWriter& html, const Report& report, const model::ShortNames& shown) {
  if (report.critical_paths.empty()) return;
  html.Section(
      "Critical paths",
      "Back from the end of a step's time on the device, always to what the work waited for last. Each part "
      "is at most what the step would save without it.");
  html.Table("Critical paths of typical and slow steps",
             {"#rank", "#step", "", "#took", "#computation", "#communication", "#other ranks", "#copies",
              "#launches", "#host", "#syncs", "#gaps"});
  const size_t rows = std::min(report.critical_paths.size(), kMaxRows);
  for (size_t i = 0; i < rows; ++i) {
    const CriticalPathLine& path = report.critical_paths[i];
    html.Row();
    html.Figure(fmt::format("{}", path.rank));
    html.Figure(fmt::format("{}", path.number));
    html.Cell(path.slow ? "slow" : "typical");
    html.Figure(Time(path.end_ns - path.begin_ns));
    for (const int64_t ns : PathColumnsOf(path)) html.Figure(Time(ns));
    html.EndRow();
  }
  html.EndTable(report.critical_paths.size() - rows);
  // Those of the first rank.
  for (const CriticalPathLine& path : report.critical_paths)
    if (path.rank == report.critical_paths.front().rank) WritePath(html, path, shown);
  html.EndSection();
}

}  // namespace gpusonde::analyze
