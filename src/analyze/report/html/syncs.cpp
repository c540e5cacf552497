// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "analyze/report/html/charts.h"
#include "analyze/report/html/sections.h"
#include "analyze/report/quantities.h"
#include "base/printable.h"

namespace gpusonde::analyze {
namespace {

void WriteSum(HtmlWriter& html, const SyncsLine::Sum& sum) {
  html.Figure(fmt::format("{}", sum.count));
  for (const int64_t ns : {sum.total_ns, sum.busy_ns, sum.idle_ns()}) html.Figure(Time(ns));
}

void WriteRankSyncs(HtmlWriter& html, const Report& report, int64_t longest_ns) {
  const size_t rows = std::min(report.syncs.size(), kMaxRows);
  html.Table(
      "What calls that wait cost each rank's process",
      {"#rank", "", "#count", "#total", "#GPU busy", "#GPU idle", "#in a typical step", "#of it idle"});
  for (size_t i = 0; i < rows; ++i) {
    const SyncsLine& line = report.syncs[i];
    html.Row();
    html.Figure(fmt::format("{}", line.rank));
    const BarPart parts[] = {{"compute", line.all.busy_ns}, {"idle", line.all.idle_ns()}};
    html.RawCell(Bar(parts, longest_ns));
    WriteSum(html, line.all);
    html.Figure(line.typical_step.has_value() ? Time(line.typical_step->total_ns) : "–");
    html.Figure(line.typical_step.has_value() ? Time(line.typical_step->idle_ns()) : "–");
    html.EndRow();
  }
  html.EndTable(report.syncs.size() - rows);
}

}  // namespace

void WriteSyncs(HtmlWriter& html, const Report& report) {
  if (report.syncs.empty()) return;
  const SyncsLine& most =
      *std::ranges::max_element(report.syncs, {}, [](const SyncsLine& line) { return line.all.total_ns; });
  html.Section("Calls that wait for the GPU",
               "Synchronising calls and copies that block the host. While the GPU is idle in one, neither "
               "does anything.");
  WriteRankSyncs(html, report, most.all.total_ns);
  html.Table(fmt::format("By call, of rank {}, which waits longest", most.rank),
             {"call", "#count", "#total", "#GPU busy", "#GPU idle"});
  for (const SyncsLine::Call& call : most.calls) {
    html.Row();
    html.Name(Shorten(Printable(call.name), 100), call.name);
    WriteSum(html, call.sum);
    html.EndRow();
  }
  html.EndTable();
  const bool has_more_threads = most.threads.size() == kMaxRows;
  html.Table(
      fmt::format("By thread, of rank {}{}", most.rank, has_more_threads ? ": the 20 that wait longest" : ""),
      {"#thread", "#count", "#total", "#GPU busy", "#GPU idle"});
  for (const SyncsLine::Thread& thread : most.threads) {
    html.Row();
    html.Figure(fmt::format("{}", thread.thread));
    WriteSum(html, thread.sum);
    html.EndRow();
  }
  html.EndTable();
  html.EndSection();
}

}  // namespace gpusonde::analyze
