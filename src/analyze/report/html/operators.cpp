// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "analyze/report/html/sections.h"
#include "analyze/report/quantities.h"

namespace gpusonde::analyze {
namespace {

void WriteKind(HtmlWriter& html, const Report& report, const model::ShortNames& shown, std::string_view kind,
               std::string_view caption) {
  std::vector<const OperatorLine*> lines;
  for (const OperatorLine& line : report.operators)
    if (line.kind == kind) lines.push_back(&line);
  if (lines.empty()) return;
  const int64_t whole = GpuTime(report);
  const size_t rows = std::min(lines.size(), kMaxRows);
  html.Table(caption,
             {"name", "#GPU time", "#share", "#self", "#calls", "#launches", "#host time", "kernels"});
  for (size_t i = 0; i < rows; ++i) {
    const OperatorLine& line = *lines[i];
    html.Row();
    html.Name(shown(line.name), line.name);
    html.Figure(Time(line.total_ns));
    html.Figure(Percent(line.total_ns, whole));
    html.Figure(Time(line.self_ns));
    html.Figure(fmt::format("{}", line.calls));
    html.Figure(fmt::format("{}", line.launches));
    html.Figure(Time(line.host_ns));
    html.Cell(KernelsText(line, shown, line.kernels.size()));
    html.EndRow();
  }
  html.EndTable(lines.size() - rows);
}

}  // namespace

void WriteOperators(HtmlWriter& html, const Report& report, const model::ShortNames& shown) {
  if (report.operators.empty()) return;
  html.Section(
      "Operators",
      "GPU work by what was open on the thread that launched it: all of it in total, and itself what no "
      "nested one of the kind launched.");
  WriteKind(html, report, shown, "operator", "Operators by the GPU time of what they launched");
  WriteKind(html, report, shown, "module", "Modules by the GPU time of what they launched");
  WriteKind(html, report, shown, "range", "Ranges by the GPU time of what they launched");
  html.EndSection();
}

void WriteWaves(HtmlWriter& html, const Report& report, const model::ShortNames& shown) {
  if (report.waves.empty()) return;
  html.Section("Last waves of blocks",
               "Blocks run in waves of as many as fit on the device; what the last wave lacks is lost, at "
               "most, as its "
               "blocks may run faster.");
  html.Table("What each rank's kernels lose in last waves",
             {"#rank", "#kernel time", "#lost", "#unknown", "kernel that loses most", "#lost"});
  const size_t rows = std::min(report.waves.size(), kMaxRows);
  for (size_t i = 0; i < rows; ++i) {
    const WavesLine& line = report.waves[i];
    html.Row();
    html.Figure(fmt::format("{}", line.rank));
    for (const int64_t ns : {line.known_ns, line.lost_ns, line.unknown_ns}) html.Figure(Time(ns));
    if (line.kernels.empty()) {
      html.Cell("–");
      html.Figure("–");
    } else {
      html.Name(shown(line.kernels.front().name), line.kernels.front().name);
      html.Figure(Time(line.kernels.front().lost_ns));
    }
    html.EndRow();
  }
  html.EndTable(report.waves.size() - rows);
  html.EndSection();
}

void WriteSequences(HtmlWriter& html, const Report& report, const model::ShortNames& shown) {
  if (report.sequences.empty()) return;
  html.Section(
      "Sequences of kernels",
      "Kernels that follow each other on a stream again and again: what a CUDA graph saves of the gaps, "
      "and fused kernels of both.");
  html.Table("Sequences that repeat", {"#rank", "#kernels", "#gaps", "#count", "kernels, in their order"});
  size_t rows = 0;
  size_t all = 0;
  for (const SequencesLine& line : report.sequences) {
    all += line.sequences.size();
    for (const SequencesLine::Sequence& sequence : line.sequences) {
      if (rows == kMaxRows) break;
      ++rows;
      html.Row();
      html.Figure(fmt::format("{}", line.rank));
      html.Figure(Time(sequence.kernel_ns));
      html.Figure(Time(sequence.gap_ns));
      html.Figure(fmt::format("{}", sequence.count));
      std::string names;
      for (const std::string& kernel : sequence.kernels)
        names += (names.empty() ? "" : " → ") + shown(kernel);
      html.Cell(names);
      html.EndRow();
    }
  }
  html.EndTable(all - rows);
  html.EndSection();
}

}  // namespace gpusonde::analyze
