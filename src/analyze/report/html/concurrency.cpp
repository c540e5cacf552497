// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/concurrency.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/report/html/charts.h"
#include "analyze/report/html/sections.h"
#include "analyze/report/quantities.h"

namespace gpusonde::analyze {
namespace {

void WriteStreams(HtmlWriter& html, const ConcurrencyLine& line) {
  const size_t rows = std::min(line.streams.size(), kMaxRows);
  html.Table(fmt::format("Streams of rank {}, and why each was idle between its events", line.rank),
             {"#stream", "", "#events", "#busy", "#idle", "#host", "#back to back", "#device", "#unknown"});
  int64_t longest_ns = 0;
  for (const ConcurrencyLine::Stream& stream : line.streams)
    if (stream.stream.has_value())
      longest_ns = std::max(longest_ns, AddSaturated(stream.busy_ns, stream.gaps.sum_ns()));
  for (size_t i = 0; i < rows; ++i) {
    const ConcurrencyLine::Stream& stream = line.streams[i];
    const IdleLine& gaps = stream.gaps;
    const BarPart parts[] = {{"compute", stream.busy_ns},
                             {"host", gaps.host_ns},
                             {"gap", gaps.back_to_back_ns},
                             {"device", gaps.device_ns},
                             {"idle", gaps.unknown_ns}};
    html.Row();
    html.Figure(StreamText(stream.stream));
    // The sum of several is as long as several bars.
    html.RawCell(stream.stream.has_value() ? Bar(parts, longest_ns) : "");
    html.Figure(fmt::format("{}", stream.events));
    for (const int64_t ns :
         {stream.busy_ns, gaps.sum_ns(), gaps.host_ns, gaps.back_to_back_ns, gaps.device_ns, gaps.unknown_ns})
      html.Figure(Time(ns));
    html.EndRow();
  }
  html.EndTable(line.streams.size() - rows);
  if (HasOthers(line))
    html.RawText(
        "<p class=dim>(other): all streams but the 64 whose first events came first; its idle times are the "
        "sum of "
        "those of each.</p>\n");
}

void WritePairs(HtmlWriter& html, const ConcurrencyLine& line) {
  const size_t rows = std::min(line.pairs.size(), kMaxRows);
  if (rows == 0) return;
  html.Table(fmt::format("Streams of rank {} that had work at the same time", line.rank),
             {"#stream", "#and stream", "#time", "#of busy time"});
  for (size_t i = 0; i < rows; ++i) {
    html.Row();
    html.Figure(StreamText(line.pairs[i].first));
    html.Figure(StreamText(line.pairs[i].second));
    html.Figure(Time(line.pairs[i].shared_ns));
    html.Figure(Percent(line.pairs[i].shared_ns, line.busy_ns()));
    html.EndRow();
  }
  html.EndTable(line.pairs.size() - rows);
}

// Of both of two kinds, beside the share of the row's kind.
void WriteKinds(HtmlWriter& html, const ConcurrencyLine& line) {
  const KindMatrix matrix = KindMatrixOf(line);
  if (matrix.kinds.empty()) return;
  std::vector<std::string> headings = {"kind", "#busy"};
  for (const ConcurrencyLine::KindTime& column : matrix.kinds)
    headings.push_back(fmt::format("#{}", column.kind));
  html.Table(fmt::format("For how long each kind of work of rank {} ran beside another, and of its own time",
                         line.rank),
             std::vector<std::string_view>(headings.begin(), headings.end()));
  for (size_t i = 0; i < matrix.kinds.size(); ++i) {
    html.Row();
    html.Cell(matrix.kinds[i].kind);
    html.Figure(Time(matrix.kinds[i].busy_ns));
    for (const int64_t ns : matrix.shared_ns[i])
      html.Figure(ns == 0 ? "" : fmt::format("{}, {}", Time(ns), Percent(ns, matrix.kinds[i].busy_ns)));
    html.EndRow();
  }
  html.EndTable();
}

}  // namespace

void WriteConcurrency(HtmlWriter& html, const Report& report) {
  const std::vector<const ConcurrencyLine*> ranks = RanksByConcurrency(report);
  if (ranks.empty()) return;
  html.Section("Work at the same time",
               "How many GPU events run at once, of ranks with several streams; those with most come first.");
  const size_t rows = std::min(ranks.size(), kMaxRows);
  html.Table("Share of each rank's busy time with so many GPU events",
             {"#rank", "#streams", "#busy", "#1", "#2", "#3", "#4 or more", "#mean"});
  for (size_t i = 0; i < rows; ++i) {
    const ConcurrencyLine& line = *ranks[i];
    html.Row();
    html.Figure(fmt::format("{}", line.rank));
    html.Figure(StreamCount(line));
    html.Figure(Time(line.busy_ns()));
    for (const int64_t ns : line.running_ns) html.Figure(Percent(ns, line.busy_ns()));
    html.Figure(fmt::format("{:.2f}", line.mean));
    html.EndRow();
  }
  html.EndTable(ranks.size() - rows);
  WriteStreams(html, *ranks[0]);
  WritePairs(html, *ranks[0]);
  WriteKinds(html, *ranks[0]);
  html.EndSection();
}

}  // namespace gpusonde::analyze
