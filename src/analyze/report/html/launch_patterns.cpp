// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/launch_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "analyze/report/html/charts.h"
#include "analyze/report/html/sections.h"
#include "analyze/report/quantities.h"
#include "base/counted.h"

namespace gpusonde::analyze {

void WriteLaunchPatterns(HtmlWriter& html, const Report& report) {
  const std::vector<ThreadOfRank> threads = ThreadsByLaunches(report);
  if (threads.empty()) return;
  html.Section(
      "How threads launch",
      "Whether threads launch kernels and graphs in bursts or one after the other, and how far the GPU is "
      "behind. A pause is a gap of ten usual ones or more between two launches; a burst has none. The bars "
      "are the time in bursts and in pauses. A pause is drained if no launch waits for the GPU at its end.");
  const size_t rows = std::min(threads.size(), kMaxRows);
  html.Table("Threads that launch most",
             {"#rank", "#thread", "", "#launches", "#per second", "#gap p50", "#gap p99", "#bursts",
              "#mean size", "#in bursts", "#apart", "#pause p50", "#drained", "#GPU behind", "#waiting"});
  for (const auto& [rank, thread] : std::span(threads).first(rows)) {
    const BarPart parts[] = {{"compute", thread->span_ns - thread->pauses_ns}, {"idle", thread->pauses_ns}};
    html.Row();
    html.Figure(fmt::format("{}", rank));
    html.Figure(fmt::format("{}", thread->thread));
    html.Raw("<td class=\"chart small\">{}</td>", Bar(parts, thread->span_ns));
    html.Figure(fmt::format("{}", thread->launches));
    html.Figure(PerSecond(*thread));
    html.Figure(GapText(thread->launches - 1, thread->gap_p50_ns));
    html.Figure(GapText(thread->launches - 1, thread->gap_p99_ns));
    html.Figure(fmt::format("{}", thread->bursts));
    html.Figure(BurstSize(*thread));
    html.Figure(Percent(thread->burst_launches, thread->launches));
    html.Figure(GapText(thread->bursts, thread->burst_gap_p50_ns));
    html.Figure(GapText(thread->pauses, thread->pause_p50_ns));
    html.Figure(Percent(thread->drained_pauses, thread->pauses));
    html.Figure(Time(thread->behind_p50_ns));
    html.Figure(fmt::format("{:.1f}", thread->waiting_mean));
    html.EndRow();
  }
  html.EndTable(threads.size() - rows);
  if (const int64_t others = LaunchesOfOthers(report); others > 0)
    html.Raw("<p class=dim>Further threads: {}.</p>\n", Counted(others, "launch"));
  html.EndSection();
}

}  // namespace gpusonde::analyze
