// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyze/report/html/sections.h"
#include "analyze/report/quantities.h"

namespace gpusonde::analyze {
namespace {

void WriteParts(HtmlWriter& html, const StepParts& parts) {
  for (const int64_t ns : {parts.compute_ns, parts.exposed_comm_ns, parts.other_ns, parts.idle_ns})
    html.Figure(Time(ns));
}

void WriteTypical(HtmlWriter& html, const Report& report) {
  const size_t rows = std::min(report.steps.size(), kMaxRows);
  html.Table("What each rank's device does in a typical step",
             {"#rank", "ranges", "#count", "#p50", "#p90", "#max", "#computation", "#only communication",
              "#only copies", "#idle"});
  for (size_t i = 0; i < rows; ++i) {
    const StepsLine& line = report.steps[i];
    html.Row();
    html.Figure(fmt::format("{}", line.rank));
    html.Cell(line.label);
    html.Figure(fmt::format("{}", line.durations.count));
    for (const int64_t ns : {line.durations.p50_ns, line.durations.p90_ns, line.durations.max_ns})
      html.Figure(Time(ns));
    WriteParts(html, line.typical);
    html.EndRow();
  }
  html.EndTable(report.steps.size() - rows);
}

void WriteSlowest(HtmlWriter& html, const Report& report, const model::ShortNames& shown) {
  size_t slow = 0;
  for (const StepsLine& line : report.steps) slow += line.slowest.size();
  if (slow == 0) return;
  html.Table("The slowest steps, and the kernel furthest beyond its mean",
             {"#rank", "#number", "#took", "#computation", "#only communication", "#only copies", "#idle",
              "kernel", "#beyond"});
  size_t rows = 0;
  for (const StepsLine& line : report.steps)
    for (const StepsLine::Slow& step : line.slowest) {
      if (rows++ >= kMaxRows) continue;
      html.Row();
      html.Figure(fmt::format("{}", line.rank));
      html.Figure(fmt::format("{}", step.number));
      html.Figure(Time(step.step_ns));
      WriteParts(html, step.parts);
      if (step.kernels.empty()) {
        html.Cell("–");
        html.Figure("–");
      } else {
        html.Name(shown(step.kernels.front().name), step.kernels.front().name);
        html.Figure(Time(step.kernels.front().excess_ns));
      }
      html.EndRow();
    }
  html.EndTable(slow - std::min(slow, kMaxRows));
}

}  // namespace

void WriteSteps(HtmlWriter& html, const Report& report, const model::ShortNames& shown) {
  if (report.steps.empty()) return;
  html.Section(
      "Steps",
      "Ranges that the program repeats. A step's time on the device begins with the first work that it "
      "launched, and ends where that of the next begins.");
  WriteTypical(html, report);
  WriteSlowest(html, report, shown);
  html.EndSection();
}

}  // namespace gpusonde::analyze
