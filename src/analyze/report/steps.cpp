// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "analyze/report/quantities.h"
#include "base/counted.h"
#include "base/printable.h"

namespace gpusonde::analyze {
namespace {

int64_t SumOf(const StepParts& parts) {
  return parts.compute_ns + parts.exposed_comm_ns + parts.other_ns + parts.idle_ns;
}

// What the slow steps of a rank took beyond the median.
int64_t CostOf(const StepsLine& line) {
  int64_t cost_ns = 0;
  for (const StepsLine::Slow& slow : line.slowest) cost_ns += slow.step_ns - line.durations.p50_ns;
  return cost_ns;
}

// What StepParts::other_ns is time of on that rank.
std::string_view OthersOf(const Report& report, const StepsLine& line) {
  const bool has_graphs = std::ranges::any_of(report.ranks, [&line](const RankLine& rank) {
    return rank.rank == line.rank && rank.trace == line.trace && rank.graph_ns > 0;
  });
  return has_graphs ? "whole graphs, copies and sets without kernels" : "copies and sets without kernels";
}

// The part of the device's time that grew most.
std::string Grown(const StepParts& slow, const StepParts& typical, std::string_view others) {
  const std::pair<int64_t, std::string_view> parts[] = {
      {slow.idle_ns - typical.idle_ns, "idle time"},
      {slow.compute_ns - typical.compute_ns, "computation"},
      {slow.exposed_comm_ns - typical.exposed_comm_ns, "communication without computation"},
      {slow.other_ns - typical.other_ns, others}};
  const auto& [more_ns, what] =
      *std::ranges::max_element(parts, {}, [](const auto& part) { return part.first; });
  return more_ns > 0 ? fmt::format("{} more {}", Time(more_ns), what) : std::string();
}

}  // namespace

std::optional<std::string> StepsSentence(const Report& report) {
  if (report.steps.empty()) return std::nullopt;
  // Of the rank whose steps take longest, as ranks of a job wait for each other.
  const StepsLine& line = *std::ranges::max_element(
      report.steps, {}, [](const StepsLine& steps) { return steps.durations.p50_ns; });
  const StepParts& typical = line.typical;
  const int64_t all_ns = SumOf(typical);
  std::string text = fmt::format("{} ({}", Counted(line.durations.count, "step"), Printable(line.label));
  if (report.steps.size() > 1)
    text += fmt::format("; rank {} of {}, whose steps take longest", line.rank, report.steps.size());
  text += fmt::format(") take {} in the median and {} at most", Time(line.durations.p50_ns),
                      Time(line.durations.max_ns));
  if (all_ns > 0)
    text += fmt::format(
        "; the device's time in a typical one is {} computation, {} communication without computation, {} "
        "{}, "
        "{} idle",
        Percent(typical.compute_ns, all_ns), Percent(typical.exposed_comm_ns, all_ns),
        Percent(typical.other_ns, all_ns), OthersOf(report, line), Percent(typical.idle_ns, all_ns));
  return text + ".";
}

std::optional<Finding> SlowestStep(const Report& report, const model::ShortNames& shown) {
  const auto worst = std::ranges::max_element(report.steps, {}, CostOf);
  if (worst == report.steps.end() || worst->slowest.empty()) return std::nullopt;
  const StepsLine::Slow& slow = worst->slowest.front();
  const double ratio = static_cast<double>(slow.step_ns) / static_cast<double>(worst->durations.p50_ns);
  std::string text = fmt::format("The slowest step of rank {} is number {}: {}, {:.1f} times the median",
                                 worst->rank, slow.number, Time(slow.step_ns), ratio);
  if (const std::string grown = Grown(slow.parts, worst->typical, OthersOf(report, *worst));
      slow.gpu_ns > 0 && !grown.empty())
    text += fmt::format("; its device has {}", grown);
  if (!slow.kernels.empty())
    text += fmt::format("; the kernel furthest beyond its mean is {}, by {}",
                        shown(slow.kernels.front().name), Time(slow.kernels.front().excess_ns));
  text += fmt::format(" ({}).", PlaceText({.trace = worst->trace,
                                           .rank = worst->rank,
                                           .begin_ns = slow.begin_ns,
                                           .end_ns = slow.begin_ns + slow.step_ns},
                                          report));
  return Finding{std::move(text), CostOf(*worst)};
}

}  // namespace gpusonde::analyze
