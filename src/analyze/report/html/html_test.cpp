// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include <string>
#include <string_view>
#include <vector>

#include "analyze/report.h"
#include "analyze/report/html/charts.h"

namespace gpusonde::analyze {
namespace {

constexpr std::string_view kHostile =
    "</td><script>alert(\"x\")</script><img src='x' onerror=alert(1)>&amp;\x1b[2J";

size_t CountOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Every kind of line, with `name` wherever a trace's text goes.
Report ReportWith(const std::string& name, size_t lines, size_t ranks) {
  Report report;
  const DurationLine durations{.name = name, .count = 5, .total_ns = 500, .min_ns = 10, .max_ns = 200};
  report.traces.assign(ranks, {.path = name, .format = "kineto-json", .kernels = 5, .kernel_ns = 500});
  for (size_t i = 0; i < lines; ++i) {
    DurationLine line = durations;
    line.name += std::to_string(i);
    report.kernels.push_back(line);
    report.graphs.push_back(line);
    report.api_calls.push_back(line);
    report.distributions.push_back(
        {.name = line.name, .bins = std::vector<DistributionLine::Bin>(32, {1, 2, 3})});
    report.variability.push_back({.name = line.name, .count = 50, .excess_ns = 400, .slowest = {{}}});
    report.copy_effects.push_back({.name = line.name, .any_copy = true, .ratio = 1.2, .high = 1.3});
    report.communication.push_back({.name = line.name, .library = "NCCL"});
    report.kernel_metrics.push_back({.name = line.name, .metric = name, .unit = name, .stddev = 1});
    report.windows.push_back({.ratio = 1.5});
    report.notes.push_back({.kind = NoteKind::kMalformed, .count = 1});
  }
  for (size_t i = 0; i < ranks; ++i) {
    const auto rank = static_cast<int64_t>(i);
    RankLine line{.rank = rank, .begin_ns = rank, .span_ns = 1'280, .busy_ns = 640, .idle_ns = 640};
    for (int64_t window = 0; window < 128; ++window) line.busy_windows_ns.push_back((window + rank) * 7 % 11);
    report.ranks.push_back(line);
    report.slow_ranks.push_back({.rank = rank, .ratio = 1.5});
    report.collectives.push_back({.rank = rank, .straggler = true});
  }
  return report;
}

TEST(Html, NamesOfTracesStayText) {
  const std::string page = ToHtml(ReportWith(std::string(kHostile), 2, 2));
  EXPECT_EQ(CountOf(page, "<script"), 0u);
  EXPECT_EQ(CountOf(page, "<img"), 0u);
  EXPECT_EQ(CountOf(page, "\x1b"), 0u);
  // Each title ends where it should: a quote in a name doesn't end it.
  EXPECT_EQ(CountOf(page, "onerror=alert(1)>"), 0u);
  EXPECT_GT(CountOf(page, "&lt;script&gt;alert(&quot;x&quot;)"), 5u);
  EXPECT_GT(CountOf(page, "&amp;amp;"), 0u);
}

TEST(Html, NothingIsLoadedAndNoScriptRuns) {
  const std::string page = ToHtml(ReportWith("kernel", 2, 2));
  EXPECT_EQ(CountOf(page, "default-src 'none'"), 1u);
  for (const std::string_view part : {"<script", "src=", "href=", "url(", "@import", "http://", "https://"})
    EXPECT_EQ(CountOf(page, part), 0u) << part;
}

TEST(Html, APageHasAtMostThreeMegabytes) {
  const std::string page = ToHtml(ReportWith(std::string(10'000, '<'), 3'000, 2'048));
  EXPECT_LT(page.size(), 3'000'000u);
  EXPECT_NE(page.find("… and 2980 more, in the JSON."), std::string::npos);
  EXPECT_NE(page.find("The 64 ranks that were the least busy, of 2048."), std::string::npos);
  EXPECT_NE(page.find(">2032–2047<"), std::string::npos);  // sixteen ranks a strip
}

TEST(Html, AReportWithoutGpuWorkSaysSo) {
  Report report;
  report.traces.push_back({.path = "empty.json", .format = "kineto-json"});
  const std::string page = ToHtml(report);
  EXPECT_EQ(CountOf(page, "There is no GPU work in these traces. "), 1u);
  EXPECT_EQ(CountOf(page, "empty.json"), 3u);  // its title, heading and row
  EXPECT_EQ(CountOf(page, "<svg"), 0u);
}

TEST(Html, NotesComeBeforeTheFiguresThatTheyAreAbout) {
  const std::string page = ToHtml(ReportWith("kernel", 2, 2));
  const size_t notes_at = page.find("<h2>Notes</h2>");
  ASSERT_NE(notes_at, std::string::npos);
  EXPECT_NE(page.find("1 event that can&#39;t be parsed is left out", notes_at), std::string::npos);
  EXPECT_LT(page.find("<h2>Findings</h2>"), notes_at);
  EXPECT_GT(page.find("<h2>What each rank did</h2>"), notes_at);
}

// Their idle times are the sum of those of several streams, which would make other bars a pixel wide.
TEST(Html, StreamsThatArentToldApartHaveNoBarAndAnExplanation) {
  Report report = ReportWith("kernel", 1, 1);
  ConcurrencyLine line{.running_ns = {1'000, 0, 0, 0}, .mean = 1};
  line.streams = {{.stream = 7, .events = 3, .busy_ns = 600, .gaps = {.host_ns = 400}},
                  {.stream = std::nullopt, .events = 9, .busy_ns = 400, .gaps = {.host_ns = 90'000}}};
  line.pairs = {{.first = 7, .second = std::nullopt, .shared_ns = 20}};
  report.concurrency = {line};
  const std::string page = ToHtml(report);
  EXPECT_NE(page.find("<rect class=compute x=0 width=600 "), std::string::npos);
  EXPECT_NE(page.find("<td class=n>(other)</td><td class=chart></td>"), std::string::npos);
  EXPECT_EQ(CountOf(page, "(other): all streams but the 64 "), 1u);
  EXPECT_NE(ToText(report).find("Stream 7 and those beyond the first 64 had work"), std::string::npos);
  report.concurrency[0].streams[1].stream = 8;
  EXPECT_EQ(CountOf(ToHtml(report), "(other)"), 1u);  // the pair's
}

TEST(Html, EveryTableIsWholeAndFiguresStandBesideCharts) {
  const std::string page = ToHtml(ReportWith("kernel", 30, 3));
  for (const std::string_view element :
       {"table", "tbody", "tr", "td", "section", "svg", "figure", "ul", "div"})
    EXPECT_EQ(
        CountOf(page, "<" + std::string(element) + ">") + CountOf(page, "<" + std::string(element) + " "),
        CountOf(page, "</" + std::string(element) + ">"))
        << element;
  EXPECT_EQ(CountOf(page, "<svg"), CountOf(page, "aria-hidden=true"));
  EXPECT_NE(page.find("<td class=n>50.0 %</td>"), std::string::npos);  // idle
}

TEST(Charts, BarsAreToScale) {
  const BarPart parts[] = {{"compute", 600}, {"comm", -5}, {"idle", 200}};
  const std::string bar = Bar(parts, 1'000);
  EXPECT_NE(bar.find("<rect class=compute x=0 width=600 "), std::string::npos);
  EXPECT_NE(bar.find("<rect class=idle x=600 width=200 "), std::string::npos);
  EXPECT_EQ(bar.find("comm"), std::string::npos);
}

TEST(Charts, EqualWindowsOfAStripAreOneShape) {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  const double shares[] = {1, 1, nothing, 0.5, 1};
  const std::string strip = HeatStrip(shares);
  EXPECT_NE(strip.find("<path class=h10 d=\"M0 0h2v1h-2zM4 0h1v1h-1z\"/>"), std::string::npos);
  EXPECT_NE(strip.find("<path class=h5 d=\"M3 0h1v1h-1z\"/>"), std::string::npos);
}

}  // namespace
}  // namespace gpusonde::analyze
