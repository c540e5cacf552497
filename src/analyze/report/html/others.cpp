// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "analyze/report/html/sections.h"
#include "analyze/report/quantities.h"
#include "base/printable.h"

namespace gpusonde::analyze {
namespace {

void WriteDurations(HtmlWriter& html, std::string_view title, const std::vector<DurationLine>& lines,
                    const model::ShortNames& shown) {
  if (lines.empty()) return;
  html.Section(title);
  const size_t rows = std::min(lines.size(), kMaxRows);
  html.Table("By their time", {"name", "#total", "#count", "#mean", "#p50", "#p99", "#max", "#outliers"});
  for (size_t i = 0; i < rows; ++i) {
    const DurationLine& line = lines[i];
    html.Row();
    html.Name(shown(line.name), line.name);
    html.Figure(Time(line.total_ns));
    html.Figure(fmt::format("{}", line.count));
    for (const int64_t ns : {line.mean_ns, line.p50_ns, line.p99_ns, line.max_ns}) html.Figure(Time(ns));
    html.Figure(fmt::format("{}", line.outliers));
    html.EndRow();
  }
  html.EndTable(lines.size() - rows);
  html.EndSection();
}

void WriteTransfers(HtmlWriter& html, std::string_view title, const std::vector<TransferLine>& lines) {
  if (lines.empty()) return;
  html.Section(title);
  html.Table("By kind and memory",
             {"kind", "from", "to", "#total", "#count", "#bytes", "#p50", "#max", "#GB/s"});
  for (const TransferLine& line : lines) {
    const DurationLine& times = line.durations;
    html.Row();
    html.Cell(line.kind.empty() ? "set" : line.kind);
    html.Cell(line.source);
    html.Cell(line.target);
    html.Figure(Time(times.total_ns));
    html.Figure(fmt::format("{}", times.count));
    html.Figure(Moved(line.bytes));
    html.Figure(Time(times.p50_ns));
    html.Figure(Time(times.max_ns));
    html.Figure(GigabytesPerSecond(line.bytes, times.total_ns));
    html.EndRow();
  }
  html.EndTable();
  html.EndSection();
}

void WriteBandwidth(HtmlWriter& html, const Report& report) {
  if (report.bandwidth.empty()) return;
  html.Section("Bandwidth of collectives",
               "As nccl-tests defines it, from when the last rank came; where not all ranks of the group are "
               "in the traces, waits for others are in it.");
  const size_t rows = std::min(report.bandwidth.size(), kMaxRows);
  html.Table("By their time", {"operation", "group", "#ranks", "#message", "#count", "#total", "#skew",
                               "#algorithm", "#bus", "waits"});
  for (size_t i = 0; i < rows; ++i) {
    const BandwidthLine& line = report.bandwidth[i];
    html.Row();
    html.Cell(line.operation);
    html.Name(Printable(line.group), line.group);
    html.Figure(line.ranks > 0 ? fmt::format("{}", line.ranks) : "–");
    html.Figure(Bytes(line.max_bytes));
    html.Figure(fmt::format("{}", line.count));
    html.Figure(Time(line.total_ns));
    html.Figure(line.skew_removed ? Time(line.skew_ns) : "–");
    html.Figure(Rate(line.algorithm_bytes_per_s));
    html.Figure(Rate(line.bus_bytes_per_s));
    html.Cell(line.skew_removed ? "taken out" : "in it");
    html.EndRow();
  }
  html.EndTable(report.bandwidth.size() - rows);
  html.EndSection();
}

void WriteMetrics(HtmlWriter& html, const Report& report, const model::ShortNames& shown) {
  std::vector<const KernelMetricLine*> varying;
  for (const KernelMetricLine& line : report.kernel_metrics)
    if (line.stddev > 0) varying.push_back(&line);
  if (varying.empty()) return;
  html.Section("Nsight Compute metrics that vary", "r: correlation with the duration, within launch shapes.");
  const size_t rows = std::min(varying.size(), kMaxRows);
  html.Table("Metrics of kernels", {"kernel", "metric", "unit", "#launches", "#mean", "#min", "#max", "#r"});
  for (size_t i = 0; i < rows; ++i) {
    const KernelMetricLine& line = *varying[i];
    html.Row();
    html.Name(shown(line.name), line.name);
    html.Name(shown(line.metric), line.metric);
    html.Cell(line.unit);
    html.Figure(fmt::format("{}", line.launches));
    for (const double value : {line.mean, line.min, line.max}) html.Figure(fmt::format("{:.6g}", value));
    html.Figure(line.correlation_within_shape.has_value()
                    ? fmt::format("{:.2f}", *line.correlation_within_shape)
                    : "–");
    html.EndRow();
  }
  html.EndTable(report.kernel_metrics.size() - rows);
  html.EndSection();
}

}  // namespace

void WriteJob(HtmlWriter& html, const Report& report, const model::ShortNames& shown) {
  if (!report.slow_ranks.empty()) {
    html.Section("Slow ranks", "Ranks whose kernels take longer than the same kernels on other ranks.");
    const size_t rows = std::min(report.slow_ranks.size(), kMaxRows);
    html.Table("Ratio with its 95 % interval", {"#rank", "#longer", "#from", "#to", "#kernels", "mostly"});
    for (size_t i = 0; i < rows; ++i) {
      const SlowRankLine& line = report.slow_ranks[i];
      html.Row();
      html.Figure(fmt::format("{}", line.rank));
      for (const double ratio : {line.ratio, line.low, line.high}) html.Figure(Longer(ratio));
      html.Figure(fmt::format("{}", line.kernels));
      html.Name(shown(line.mostly.name), line.mostly.name);
      html.EndRow();
    }
    html.EndTable(report.slow_ranks.size() - rows);
    html.EndSection();
  }
  if (!report.collectives.empty()) {
    html.Section("Collectives", "The rank with the least time in a collective came last; the others waited.");
    const size_t rows = std::min(report.collectives.size(), kMaxRows);
    html.Table(
        "Ranks in the collectives that their groups took part in",
        {"#rank", "#matched", "#came last", "#waited", "#delayed others", "#clock offset", "straggler"});
    for (size_t i = 0; i < rows; ++i) {
      const CollectiveLine& line = report.collectives[i];
      html.Row();
      html.Figure(fmt::format("{}", line.rank));
      html.Figure(fmt::format("{}", line.matched));
      html.Figure(fmt::format("{}", line.last));
      for (const int64_t ns : {line.waited_ns, line.delayed_ns, line.clock_offset_ns}) html.Figure(Time(ns));
      html.Cell(line.straggler ? "yes" : "no");
      html.EndRow();
    }
    html.EndTable(report.collectives.size() - rows);
    html.EndSection();
  }
  if (!report.windows.empty()) {
    html.Section(
        "Unusual windows",
        "Stretches of time in which a rank's kernels took longer than the same kernels at other times. "
        "Times count from the first GPU event of the rank.");
    const size_t rows = std::min(report.windows.size(), kMaxRows);
    html.Table("By rank and time", {"#rank", "#from", "#to", "#longer", "#kernels", "#kernel time"});
    for (size_t i = 0; i < rows; ++i) {
      const WindowLine& line = report.windows[i];
      html.Row();
      html.Figure(fmt::format("{}", line.rank));
      html.Figure(Time(line.begin_ns));
      html.Figure(Time(line.end_ns));
      html.Figure(Longer(line.ratio));
      html.Figure(fmt::format("{}", line.kernels));
      html.Figure(Time(line.kernel_ns));
      html.EndRow();
    }
    html.EndTable(report.windows.size() - rows);
    html.EndSection();
  }
}

void WriteOthers(HtmlWriter& html, const Report& report, const model::ShortNames& shown) {
  WriteDurations(html, "CUDA graphs traced as a whole", report.graphs, shown);
  if (!report.communication.empty()) {
    html.Section("Communication kernels", "Kernels that count as communication.");
    const size_t rows = std::min(report.communication.size(), kMaxRows);
    html.Table("By their time", {"name", "library", "#total", "#count"});
    for (size_t i = 0; i < rows; ++i) {
      const CommunicationLine& line = report.communication[i];
      html.Row();
      html.Name(shown(line.name), line.name);
      html.Cell(line.library);
      html.Figure(Time(line.total_ns));
      html.Figure(fmt::format("{}", line.count));
      html.EndRow();
    }
    html.EndTable(report.communication.size() - rows);
    html.EndSection();
  }
  WriteBandwidth(html, report);
  WriteTransfers(html, "Copies", report.memcpys);
  WriteTransfers(html, "Sets", report.memsets);
  WriteDurations(html, "API calls", report.api_calls, shown);
  WriteMetrics(html, report, shown);
}

}  // namespace gpusonde::analyze
