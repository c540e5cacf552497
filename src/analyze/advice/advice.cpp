// SPDX-License-Identifier: Apache-2.0
#include "analyze/advice/advice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "analyze/advice/rules.h"

namespace gpusonde::analyze {
namespace {

constexpr std::optional<AdviceLine> (*kRules[])(const Report&) = {
    AdviseClockThrottling,   AdviseExposedCommunication, AdviseExposedCopies,
    AdviseFullQueue,         AdviseHostStalls,           AdviseLaunchBound,
    AdviseLoaderBound,       AdvisePageableMemory,       AdviseSlowPeriods,
    AdviseSlowRank,          AdviseSmallKernels,         AdviseStraggler,
    AdviseSynchronousCopies, AdviseSynchronousSets,      AdviseTailEffect,
};

}  // namespace

int64_t ExcessOf(int64_t taken_ns, double ratio) {
  return std::llround(static_cast<double>(taken_ns) * (1 - 1 / ratio));
}

AdviceLine AdviceFor(const WorstRank& worst, std::string_view rule) {
  return {.rule = rule,
          .rank = worst.rank->rank,
          .ranks = worst.affected,
          .gain_ns = worst.loss_ns,
          .span_ns = worst.rank->span_ns};
}

bool LaunchesGraphs(const Report& report) {
  return std::ranges::any_of(report.api_calls, [](const DurationLine& call) {
    return call.name.find("GraphLaunch") != std::string::npos;  // of cuda, cu and hip
  });
}

std::vector<std::string> CommunicationNames(const Report& report) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(report.communication.size(), kMaxEvidence); ++i)
    names.push_back(report.communication[i].name);
  return names;
}

AdviceLine::Place PlaceAt(const RankLine& rank, int64_t begin_ns, int64_t end_ns) {
  return {.trace = rank.trace,
          .rank = rank.rank,
          .begin_ns = rank.first_ns + begin_ns,
          .end_ns = rank.first_ns + end_ns};
}

double AllSpans(const Report& report) {
  double all_ns = 0;
  for (const RankLine& rank : report.ranks) all_ns += static_cast<double>(rank.span_ns);
  return all_ns;
}

std::vector<AdviceLine> Advise(const Report& report) {
  std::vector<AdviceLine> advice;
  for (const auto rule : kRules)
    if (std::optional<AdviceLine> line = rule(report)) advice.push_back(std::move(*line));
  std::ranges::stable_sort(advice, std::greater<>(), &AdviceLine::gain_ns);
  return advice;
}

}  // namespace gpusonde::analyze
