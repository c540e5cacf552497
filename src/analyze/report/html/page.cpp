// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/report.h"
#include "analyze/report/html/sections.h"
#include "analyze/report/html/writer.h"
#include "analyze/report/quantities.h"
#include "analyze/report/sentences.h"
#include "base/counted.h"
#include "base/html.h"
#include "base/printable.h"
#include "model/short_names.h"

namespace gpusonde::analyze {
namespace {

// A page has at most 3 MB: about 60 names of this length, 60 paths, and the rows of sections.h.
constexpr size_t kMaxName = 2000;
constexpr size_t kMaxPath = 500;

std::string TitleOf(const Report& report) {
  if (report.traces.empty()) return "gpusonde analyze";
  const std::string& path = report.traces[0].path;
  std::string title = Shorten(path.substr(path.rfind('/') + 1), 80);
  if (report.traces.size() > 1) title += fmt::format(" and {} more", report.traces.size() - 1);
  return title;
}

void WriteSentences(HtmlWriter& html, const ReportSentences& sentences) {
  html.Section("Findings");
  if (sentences.overview.empty() && sentences.findings.empty())
    html.Paragraph(
        "There is no GPU work in these traces. Profilers record it if told to: PyTorch's with "
        "ProfilerActivity.CUDA, Nsight Systems with --trace=cuda.");
  if (!sentences.overview.empty()) {
    html.RawText("<ul>\n");
    for (const std::string& sentence : sentences.overview) html.Raw("<li>{}</li>\n", SentenceHtml(sentence));
    html.RawText("</ul>\n");
  }
  if (!sentences.findings.empty()) {
    const size_t rows = std::min(sentences.findings.size(), kMaxRows);
    html.Table("By what they cost, in time of a rank or summed over its kernels", {"#cost", "finding"});
    for (size_t i = 0; i < rows; ++i) {
      const Finding& finding = sentences.findings[i];
      html.Row();
      html.Figure(finding.cost_ns > 0 ? Time(finding.cost_ns) : "–");
      html.Raw("<td class=sentence>{}</td>", SentenceHtml(finding.text));
      html.EndRow();
    }
    html.EndTable(sentences.findings.size() - rows);
  }
  html.EndSection();
}

void WriteAdvice(HtmlWriter& html, const Report& report, const model::ShortNames& shown) {
  if (report.advice.empty()) return;
  html.Section("Advice", "What may be done, by what it may gain at most; gains of different rules overlap.");
  html.Table("Advice by gain", {"#gain, at most", "#of the span", "advice"});
  for (const AdviceLine& advice : report.advice) {
    const AdviceSentences sentences = SentencesOf(advice, report, shown);
    html.Row();
    html.Figure(Time(advice.gain_ns));
    html.Figure(Percent(advice.gain_ns, advice.span_ns));
    html.Raw("<td class=sentence>{}<br><span class=dim>Gain: {}.</span>", SentenceHtml(sentences.finding),
             SentenceHtml(sentences.gain));
    if (!sentences.evidence.empty())
      html.Raw("<br><span class=dim>Evidence: {}.</span>", SentenceHtml(sentences.evidence));
    html.RawText("</td>");
    html.EndRow();
  }
  html.EndTable();
  html.EndSection();
}

// What the figures lack: before them, so that nobody reads them without.
void WriteNotes(HtmlWriter& html, const Report& report) {
  if (report.notes.empty()) return;
  html.Section("Notes", "What the traces lack, and what is left out of the figures below.");
  html.RawText("<ul>\n");
  const size_t notes = std::min(report.notes.size(), kMaxRows);
  for (size_t i = 0; i < notes; ++i)
    html.Raw("<li>{}: {}.</li>\n",
             EscapedHtml(Shorten(Printable(report.traces[report.notes[i].trace].path), kMaxPath)),
             SentenceHtml(SentenceOf(report.notes[i], report)));
  html.RawText("</ul>\n");
  if (report.notes.size() > notes)
    html.Raw("<p class=dim>… and {} more notes, in the JSON.</p>\n", report.notes.size() - notes);
  html.EndSection();
}

void WriteTraces(HtmlWriter& html, const Report& report) {
  if (report.traces.empty()) return;
  html.Section("Traces");
  const size_t rows = std::min(report.traces.size(), kMaxRows);
  html.Table("Files in the order given", {"path", "format", "#events", "#duration", "#kernels",
                                          "#kernel time", "#copies", "#sets", "#API calls", "#ranges"});
  for (size_t i = 0; i < rows; ++i) {
    const TraceLine& trace = report.traces[i];
    html.Row();
    html.Name(Shorten(Printable(trace.path), kMaxPath), trace.path);
    html.Cell(trace.format);
    html.Figure(fmt::format("{}", trace.events));
    html.Figure(Time(trace.duration_ns));
    html.Figure(fmt::format("{}", trace.kernels));
    html.Figure(Time(trace.kernel_ns));
    for (const int64_t count : {trace.memcpys, trace.memsets, trace.api_calls, trace.ranges})
      html.Figure(fmt::format("{}", count));
    html.EndRow();
  }
  html.EndTable(report.traces.size() - rows);
  html.EndSection();
}

// The whole names of kernels that the page shortens.
void WriteNames(HtmlWriter& html, const Report& report, const model::ShortNames& shown) {
  std::map<std::string, std::string_view> whole;
  const auto add = [&](const auto& lines) {
    for (size_t i = 0; i < std::min(lines.size(), kMaxRows); ++i)
      if (std::string text = shown(lines[i].name); text != Printable(lines[i].name))
        whole.emplace(std::move(text), lines[i].name);
  };
  add(report.kernels);
  add(report.variability);
  add(report.copy_effects);
  if (whole.empty()) return;
  html.Section("Whole names of kernels");
  html.Table("Names that are shortened above", {"shown as", "name"});
  for (const auto& [text, name] : whole) {
    html.Row();
    html.Raw("<td class=name>{}</td><td class=name>{}</td>", EscapedHtml(text),
             EscapedHtml(Shorten(Printable(name), kMaxName)));
    html.EndRow();
  }
  html.EndTable();
  html.EndSection();
}

}  // namespace

std::string ToHtml(const Report& report) {
  const model::ShortNames shown(NamesIn(report));
  HtmlWriter html;
  html.BeginPage(TitleOf(report), fmt::format("Analysis by gpusonde of {}.",
                                              Counted(static_cast<int64_t>(report.traces.size()), "trace")));
  WriteSentences(html, SentencesOf(report, shown));
  WriteAdvice(html, report, shown);
  WriteNotes(html, report);
  WriteRanks(html, report);
  WriteHeatMap(html, report);
  WriteConcurrency(html, report);
  WriteLaunchPatterns(html, report);
  WriteSyncs(html, report);
  WriteSteps(html, report, shown);
  WriteCriticalPaths(html, report, shown);
  WriteKernels(html, report, shown);
  WriteOperators(html, report, shown);
  WriteWaves(html, report, shown);
  WriteSequences(html, report, shown);
  WriteVariability(html, report, shown);
  WriteCopyEffects(html, report, shown);
  WriteJob(html, report, shown);
  WriteOthers(html, report, shown);
  WriteTraces(html, report);
  WriteNames(html, report, shown);
  html.EndPage();
  return html.Take();
}

}  // namespace gpusonde::analyze
