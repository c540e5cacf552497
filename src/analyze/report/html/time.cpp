// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "analyze/report/html/charts.h"
#include "analyze/report/html/sections.h"
#include "analyze/report/quantities.h"
#include "base/counted.h"
#include "base/html.h"

namespace gpusonde::analyze {
namespace {

constexpr size_t kMaxRanks = 64;
constexpr size_t kMaxStrips = 128;
constexpr size_t kColumns = 128;
constexpr size_t kEighth = kColumns / 8;

void Key(HtmlWriter& html, std::initializer_list<std::pair<std::string_view, std::string_view>> parts) {
  html.RawText("<p>");
  for (const auto& [style, meaning] : parts)
    html.Raw(
        "<span class=key><svg viewBox=\"0 0 1 1\" aria-hidden=true><rect class={} width=1 height=1 "
        "/></svg>{}</span>",
        style, EscapedHtml(meaning));
  html.RawText("</p>\n");
}

// All ranks if they are few, else the least busy ones; in the order of the report.
std::vector<const RankLine*> ShownRanks(const Report& report) {
  std::vector<const RankLine*> ranks;
  for (const RankLine& rank : report.ranks) ranks.push_back(&rank);
  if (ranks.size() <= kMaxRanks) return ranks;
  const auto busy = [](const RankLine* rank) {
    return static_cast<double>(rank->busy_ns) / static_cast<double>(std::max<int64_t>(1, rank->span_ns));
  };
  std::ranges::stable_sort(ranks, {}, busy);
  ranks.resize(kMaxRanks);
  std::ranges::sort(ranks, {}, [](const RankLine* rank) { return std::pair(rank->rank, rank->begin_ns); });
  return ranks;
}

// In windows of the time of all ranks, for one rank: how long there was data, and how long it was busy.
struct Row {
  std::vector<double> known_ns = std::vector<double>(kColumns);
  std::vector<double> busy_ns = std::vector<double>(kColumns);

  double Share(size_t begin, size_t end) const {
    double known = 0, busy = 0;
    for (size_t i = begin; i < end; ++i) {
      known += known_ns[i];
      busy += busy_ns[i];
    }
    return known > 0 ? busy / known : std::numeric_limits<double>::quiet_NaN();
  }
  // `begin_ns` and the columns in the time of the page; each window's time counts as evenly busy.
  void Add(const RankLine& rank, double begin_ns, double column_ns) {
    const double window_ns = static_cast<double>(rank.span_ns) / static_cast<double>(kColumns);
    for (size_t i = 0; i < rank.busy_windows_ns.size() && window_ns > 0; ++i) {
      const double from = begin_ns + static_cast<double>(i) * window_ns;
      const double busy = static_cast<double>(rank.busy_windows_ns[i]) / window_ns;
      const auto first = static_cast<size_t>(std::max(0.0, from / column_ns));
      for (size_t column = first; column < kColumns; ++column) {
        const double left = std::max(from, static_cast<double>(column) * column_ns);
        const double right = std::min(from + window_ns, static_cast<double>(column + 1) * column_ns);
        if (right <= left) break;
        known_ns[column] += right - left;
        busy_ns[column] += busy * (right - left);
      }
    }
  }
};

std::string ShareText(double share) { return std::isnan(share) ? "–" : fmt::format("{:.0f} %", 100 * share); }

}  // namespace

void WriteRanks(HtmlWriter& html, const Report& report) {
  if (report.ranks.empty()) return;
  const std::vector<const RankLine*> ranks = ShownRanks(report);
  const size_t left_out = report.ranks.size() - ranks.size();
  int64_t longest_ns = 0;
  for (const RankLine* rank : ranks) longest_ns = std::max(longest_ns, rank->span_ns);
  html.Section("What each rank did", left_out > 0
                                         ? fmt::format("The {} ranks that were the least busy, of {}.",
                                                       ranks.size(), report.ranks.size())
                                         : "");
  Key(html, {{"compute", "computation"},
             {"comm", "communication without computation"},
             {"copy", "copies and sets alone"},
             {"graph", "CUDA graphs traced as a whole"},
             {"idle", "idle"}});
  html.Table("Time of each rank, from its first GPU event to its last",
             {"#rank", "#device", "", "#span", "#computation", "#only communication", "#only copies",
              "#graphs", "#idle"});
  for (const RankLine* rank : ranks) {
    const int64_t copying_ns = rank->only_transfer_ns();
    const int64_t graph_ns = rank->busy_ns - rank->compute_ns - rank->exposed_comm_ns - copying_ns;
    const BarPart parts[] = {{"compute", rank->compute_ns},
                             {"comm", rank->exposed_comm_ns},
                             {"copy", copying_ns},
                             {"graph", graph_ns},
                             {"idle", rank->idle_ns}};
    html.Row();
    html.Figure(fmt::format("{}", rank->rank));
    html.Figure(fmt::format("{}", rank->device));
    html.RawCell(Bar(parts, longest_ns));
    html.Figure(Time(rank->span_ns));
    for (const BarPart& part : parts) html.Figure(Percent(part.length, rank->span_ns));
    html.EndRow();
  }
  html.EndTable(left_out);
  html.EndSection();

  html.Section("Why they were idle");
  Key(html, {{"host", "the host had launched nothing"},
             {"gap", "back to back, under 30 µs"},
             {"device", "waiting for another stream or an event"},
             {"idle", "unknown: no launch is known"}});
  int64_t most_ns = 0;
  for (const RankLine* rank : ranks) most_ns = std::max(most_ns, rank->idle_ns);
  html.Table("Idle time by cause", {"#rank", "", "#idle", "#host", "#back to back", "#device", "#unknown"});
  for (const RankLine* rank : ranks) {
    const BarPart parts[] = {{"host", rank->idle.host_ns},
                             {"gap", rank->idle.back_to_back_ns},
                             {"device", rank->idle.device_ns},
                             {"idle", rank->idle.unknown_ns}};
    html.Row();
    html.Figure(fmt::format("{}", rank->rank));
    html.RawCell(Bar(parts, most_ns));
    html.Figure(Time(rank->idle_ns));
    for (const BarPart& part : parts) html.Figure(Percent(part.length, rank->idle_ns));
    html.EndRow();
  }
  html.EndTable(left_out);
  html.EndSection();
}

void WriteHeatMap(HtmlWriter& html, const Report& report) {
  if (report.ranks.empty()) return;
  // Clocks of traces may be hours apart; then each rank is shown over its own time.
  int64_t end_ns = 0, longest_ns = 0;
  for (const RankLine& rank : report.ranks) {
    longest_ns = std::max(longest_ns, rank.span_ns);
    int64_t last_ns = 0;
    if (__builtin_add_overflow(rank.begin_ns, rank.span_ns, &last_ns))
      last_ns = std::numeric_limits<int64_t>::max();
    end_ns = std::max(end_ns, last_ns);
  }
  const bool own_time = end_ns / 4 > longest_ns;
  if (own_time) end_ns = longest_ns;
  const double column_ns = std::max(1.0, static_cast<double>(end_ns)) / static_cast<double>(kColumns);
  const size_t per_row = (report.ranks.size() + kMaxStrips - 1) / kMaxStrips;

  html.Section(
      "GPU busy over time",
      own_time
          ? "Each rank over its own time, as they ran far apart."
          : "The time of all ranks, by the clocks of their traces. The stronger the colour, the busier.");
  html.Table(per_row > 1
                 ? fmt::format("Mean busy share of {} ranks a row, over time and by eighths of it", per_row)
                 : "Busy share of each rank, over time and by eighths of it",
             {"#rank", "", "#1/8", "#2/8", "#3/8", "#4/8", "#5/8", "#6/8", "#7/8", "#8/8"});
  for (size_t first = 0; first < report.ranks.size(); first += per_row) {
    const size_t last = std::min(first + per_row, report.ranks.size()) - 1;
    Row row;
    for (size_t i = first; i <= last; ++i)
      row.Add(report.ranks[i], own_time ? 0 : static_cast<double>(report.ranks[i].begin_ns), column_ns);
    std::vector<double> shares;
    for (size_t i = 0; i < kColumns; ++i) shares.push_back(row.Share(i, i + 1));
    html.Row();
    html.Figure(first == last ? fmt::format("{}", report.ranks[first].rank)
                              : fmt::format("{}–{}", report.ranks[first].rank, report.ranks[last].rank));
    html.RawCell(HeatStrip(shares));
    for (size_t i = 0; i < kColumns; i += kEighth) html.Figure(ShareText(row.Share(i, i + kEighth)));
    html.EndRow();
  }
  html.Row();
  html.Cell("");
  html.RawCell(fmt::format("<div class=axis><span>0</span><span>{}</span><span>{}</span></div>",
                           EscapedHtml(Time(end_ns / 2)), EscapedHtml(Time(end_ns))));
  html.RawText("<td colspan=8></td>");
  html.EndRow();
  html.EndTable();
  html.EndSection();
}

}  // namespace gpusonde::analyze
