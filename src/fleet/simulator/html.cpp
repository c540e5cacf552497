// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleet/simulator/simulator.h"

namespace gpusonde::fleet {
namespace {

using Out = std::back_insert_iterator<std::string>;

// The colours and sizes of web/src/styles/base.css.
constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>gpusonde: a simulated fleet</title>
<style>
:root { color-scheme: light dark; --background: #fff; --raised: #f5f6f7; --text: #16181c; --dim: #5f636b;
  --line: #e1e3e7; --accent: #0b5cad; --second: #b45309; }
@media screen and (prefers-color-scheme: dark) { :root { --background: #121418; --raised: #1b1e23;
  --text: #e8eaed; --dim: #9a9fa9; --line: #272b31; --accent: #78b6f2; --second: #f0b35c; } }
body { max-width: 1080px; margin: 0 auto; padding: 0 16px 32px; background: var(--background); color: var(--text);
  font: 13px/18px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
  font-variant-numeric: tabular-nums; }
header { display: flex; align-items: baseline; gap: 8px; padding: 11px 0; border-bottom: 1px solid var(--line); }
h1 { margin: 0; font-size: 13px; font-weight: 700; }
h2 { margin: 24px 0 6px; font-size: 13px; font-weight: 700; }
.dim, figcaption, th { color: var(--dim); }
.simulated { border: 1px solid var(--line); border-radius: 3px; padding: 0 5px; color: var(--dim); font-size: 11px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); gap: 16px 32px; }
figure { margin: 0; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--dim); font-size: 11px; }
.grid { stroke: var(--line); }
.first { stroke: var(--accent); } .second { stroke: var(--second); }
polyline { fill: none; stroke-width: 1.5; } circle { stroke: none; }
circle.first, .key.first { fill: var(--accent); background: var(--accent); }
circle.second, .key.second { fill: var(--second); background: var(--second); }
.key { display: inline-block; width: 10px; height: 2px; margin: 0 4px 3px 12px; }
table { border-collapse: collapse; }
th, td { padding: 2px 14px 2px 0; border-bottom: 1px solid var(--line); text-align: right; font-weight: 400; }
th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; }
summary { cursor: pointer; color: var(--dim); }
@media print { * { print-color-adjust: exact; } figure, tr { break-inside: avoid; } }
</style>
</head>
<body>
)";

// One curve: its name and points, the shares of the vertical axis being from 0 to 1.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

// A chart of shares, with a table of its numbers for screen readers.
class Chart {
 public:
  Chart(std::string title, std::string horizontal, bool is_logarithmic)
      : title_(std::move(title)), horizontal_(std::move(horizontal)), is_logarithmic_(is_logarithmic) {}

  void Add(Curve curve) { curves_.push_back(std::move(curve)); }

  void Write(Out out) const {
    fmt::format_to(out, "<figure><figcaption>{}", title_);
    for (size_t i = 0; i < curves_.size(); ++i)
      fmt::format_to(out, "<span class=\"key {}\"></span>{}", Class(i), curves_[i].name);
    fmt::format_to(out, "</figcaption>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", kWidth,
                   kHeight, title_);
    for (int percent = 0; percent <= 100; percent += 25)
      fmt::format_to(out,
                     "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
                     "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{} %</text>\n",
                     kLeft, kWidth - kRight, Y(percent / 100.0), Y(percent / 100.0), kLeft - 6,
                     Y(percent / 100.0) + 4, percent);
    if (!curves_.empty()) WriteMarks(out);
    for (size_t i = 0; i < curves_.size(); ++i) WriteCurve(out, i);
    fmt::format_to(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text></svg>\n", kWidth - kRight,
                   kHeight - 2, horizontal_);
    WriteTable(out);
    fmt::format_to(out, "</figure>\n");
  }

 private:
  static constexpr double kWidth = 480;
  static constexpr double kHeight = 220;
  static constexpr double kLeft = 44;
  static constexpr double kRight = 10;
  static constexpr double kTop = 8;
  static constexpr double kBottom = 34;

  static const char* Class(size_t curve) { return curve % 2 == 0 ? "first" : "second"; }
  double Scale(double x) const { return is_logarithmic_ ? std::log2(x) : x; }
  double X(double x) const {
    const double first = Scale(curves_[0].points.front().first);
    const double last = Scale(curves_[0].points.back().first);
    const double share = last > first ? (Scale(x) - first) / (last - first) : 0;
    return kLeft + share * (kWidth - kLeft - kRight);
  }
  static double Y(double share) { return kTop + (1 - share) * (kHeight - kTop - kBottom); }

  void WriteMarks(Out out) const {
    const auto& points = curves_[0].points;
    const size_t step = std::max<size_t>(1, (points.size() + 7) / 8);
    for (size_t i = 0; i < points.size(); i += step)
      fmt::format_to(out, "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n",
                     X(points[i].first), kHeight - kBottom + 16, points[i].first);
  }

  void WriteCurve(Out out, size_t index) const {
    const Curve& curve = curves_[index];
    fmt::format_to(out, "<polyline class=\"{}\" points=\"", Class(index));
    for (const auto& [x, share] : curve.points) fmt::format_to(out, "{:.1f},{:.1f} ", X(x), Y(share));
    fmt::format_to(out, "\"/>\n");
    for (const auto& [x, share] : curve.points)
      fmt::format_to(out,
                     "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"><title>{} {:g}: {:.2f} % "
                     "{}</title></circle>\n",
                     Class(index), X(x), Y(share), horizontal_, x, 100 * share, curve.name);
  }

  void WriteTable(Out out) const {
    fmt::format_to(out, "<details><summary>Numbers</summary><table><tr><th>{}</th>", horizontal_);
    for (const Curve& curve : curves_) fmt::format_to(out, "<th>{}</th>", curve.name);
    fmt::format_to(out, "</tr>\n");
    for (size_t i = 0; !curves_.empty() && i < curves_[0].points.size(); ++i) {
      fmt::format_to(out, "<tr><td>{:g}</td>", curves_[0].points[i].first);
      for (const Curve& curve : curves_)
        fmt::format_to(out, "<td>{:.2f} %</td>", 100 * curve.points[i].second);
      fmt::format_to(out, "</tr>\n");
    }
    fmt::format_to(out, "</table></details>");
  }

  std::string title_;
  std::string horizontal_;
  bool is_logarithmic_;
  std::vector<Curve> curves_;
};

void WriteRow(Out out, std::string_view what, const std::string& value) {
  fmt::format_to(out, "<tr><td>{}</td><td>{}</td></tr>\n", what, value);
}

std::string ShareOf(uint64_t part, uint64_t all) {
  if (all == 0) return "none of 0";
  return fmt::format("{:.2f} % of {}", 100 * static_cast<double>(part) / static_cast<double>(all), all);
}

void WriteCharts(Out out, const Run& run) {
  fmt::format_to(out, "<div class=\"figures\">\n");
  Chart over_time("Coverage: applications × groups seen so far", "hour", false);
  Curve sampled{"sampled", {}};
  Curve released{"released", {}};
  for (size_t i = 0; i < run.hours.size(); ++i) {
    sampled.points.emplace_back(static_cast<double>(i + 1), run.hours[i].sampled_coverage);
    released.points.emplace_back(static_cast<double>(i + 1), run.hours[i].released_coverage);
  }
  over_time.Add(std::move(sampled));
  if (run.kind == ReportKind::kMasked) over_time.Add(std::move(released));
  over_time.Write(out);
  if (!run.at_epsilon.empty()) {
    Chart over_epsilon("Released coverage at the end, by a window's ε", "ε", true);
    Curve curve{"released", {}};
    for (const AtEpsilon& point : run.at_epsilon)
      curve.points.emplace_back(point.epsilon, point.released_coverage);
    over_epsilon.Add(std::move(curve));
    over_epsilon.Write(out);
  }
  fmt::format_to(out, "</div>\n");
}

void WriteFigures(Out out, const Run& run) {
  const Identification& found = run.identification;
  const Measured& measured = run.measured;
  fmt::format_to(out, "<div class=\"figures\"><div><h2>What came out</h2><table>\n");
  WriteRow(out, "known applications identified", ShareOf(found.known_right, found.known));
  WriteRow(out, "unknown ones called unknown", ShareOf(found.unknown_right, found.unknown));
  WriteRow(out, "private queries that agreed", ShareOf(found.private_agreed, found.private_queries));
  WriteRow(out, "unknown applications found spreading", fmt::format("{}", found.signatures));
  const bool opened = run.error.slots > 0;
  if (opened) WriteRow(out, "error of sums before noise", fmt::format("{}", run.error.largest_before_noise));
  if (run.kind == ReportKind::kMasked) {
    if (opened)
      WriteRow(out, "noise within 2 standard deviations",
               fmt::format("{:.1f} %", 100 * run.error.within_two_deviations));
    WriteRow(out, "ε of a window", fmt::format("{:.2f}", run.budgets.epsilon_window));
    WriteRow(out, "ε spent", fmt::format("{:.2f}", run.budgets.epsilon_spent));
    WriteRow(out, "windows left in the budget", fmt::format("{}", run.budgets.windows_left));
  } else {
    WriteRow(out, "differential privacy", "none");
  }
  fmt::format_to(out, "</table></div><div><h2>What it cost on this machine</h2><table>\n");
  const bool asked = found.private_queries > 0;
  if (asked)
    WriteRow(out, "a device's share of its node's cores, with a private query",
             fmt::format("{:.5f} %", 100 * measured.device_share));
  WriteRow(out, "a device's share of its node's cores, with the catalog in the open",
           fmt::format("{:.5f} %", 100 * measured.device_share_public));
  WriteRow(out, "a report, made and signed",
           fmt::format("{:.0f} µs, {} bytes", measured.report_us, run.report_bytes));
  WriteRow(out, "a report, verified and added", fmt::format("{:.0f} µs", measured.accept_us));
  WriteRow(out, "a decryptor's answer, for each report", fmt::format("{:.0f} µs", measured.answer_us));
  if (asked) {
    WriteRow(out, "a private query, device",
             fmt::format("{:.0f} µs, {} bytes", measured.query_us, run.query_bytes));
    WriteRow(out, "a private query, server",
             fmt::format("{:.0f} µs, {} bytes", measured.query_server_us, run.answer_bytes));
  }
  WriteRow(out, "90 % of reports acknowledged within",
           fmt::format("{:.2f} ms", measured.report_latency.p90_ms));
  if (asked)
    WriteRow(out, "90 % of queries answered within", fmt::format("{:.2f} ms", measured.query_latency.p90_ms));
  WriteRow(out, "all reports of an hour, made to released", fmt::format("{:.1f} s", measured.pipeline_s));
  fmt::format_to(out, "</table></div></div>\n");
}

void WriteHours(Out out, const Run& run) {
  fmt::format_to(out,
                 "<h2>Hours</h2><div "
                 "class=\"wide\"><table><tr><th>hour</th><th>devices</th><th>busy</th><th>accepted</th>"
                 "<th>rejected</th><th>cohorts</th><th>too small</th><th>unanswered</th><th>spoilt</th>"
                 "<th>expelled</th><th>of them honest</th><th>shown falsely</th></tr>\n");
  for (size_t i = 0; i < run.hours.size(); ++i) {
    const Hour& hour = run.hours[i];
    uint64_t rejected = 0;
    for (size_t verdict = 1; verdict < kVerdicts; ++verdict) rejected += hour.verdicts[verdict];
    fmt::format_to(out,
                   "<tr><td>{}</td><td>{}</td><td>{:.1f} %</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
                   "<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                   i + 1, hour.devices, 100 * hour.busy_share, hour.verdicts[0], rejected, hour.lists,
                   hour.lists_too_small, hour.lists_unanswered, hour.lists_refused, hour.expelled,
                   hour.expelled_honest, hour.released_falsely);
  }
  fmt::format_to(out, "</table></div>\n");
}

}  // namespace

std::string ToHtml(const Simulated& simulated) {
  const Parameters& p = simulated.parameters;
  std::string page(kHead);
  const Out out(page);
  fmt::format_to(
      out,
      "<header><h1>gpusonde</h1><span>fleet</span><span class=\"simulated\">simulated</span></header>\n"
      "<p>{} devices over {} h, {:g} % of them busy; {} applications in the catalog (Zipf {:g}), {} not; "
      "{} decryptors, {} groups of characteristics, {} cohorts; {} cheats. Applications are made from {} "
      "kernel streams of real programs. Every report was really encrypted, signed, verified, added and "
      "released by the code of the roles.{}</p>\n",
      p.devices, p.hours, 100 * p.load, p.applications, p.zipf, p.unknown_applications, p.decryptors,
      p.groups, p.cohorts, p.cheats, simulated.streams.size(),
      simulated.stopped ? " <strong>It was stopped before its end.</strong>" : "");
  for (const Run& run : simulated.runs) {
    fmt::format_to(out, "<h2>{}</h2>\n",
                   run.kind == ReportKind::kMasked
                       ? "Masked reports, released with noise"
                       : "BFV reports under a joint key (Penrose’s way): for honest devices only, no noise");
    WriteCharts(out, run);
    WriteFigures(out, run);
    WriteHours(out, run);
  }
  return page + "</body>\n</html>\n";
}

}  // namespace gpusonde::fleet
