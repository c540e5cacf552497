// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/report.h"

// A rule looks for one problem in a report and returns at most one piece of advice: for the rank that loses
// most by it.
namespace gpusonde::analyze {

std::optional<AdviceLine> AdviseClockThrottling(const Report& report);
std::optional<AdviceLine> AdviseExposedCommunication(const Report& report);
std::optional<AdviceLine> AdviseExposedCopies(const Report& report);
std::optional<AdviceLine> AdviseFullQueue(const Report& report);
std::optional<AdviceLine> AdviseHostStalls(const Report& report);
std::optional<AdviceLine> AdviseLaunchBound(const Report& report);
std::optional<AdviceLine> AdviseLoaderBound(const Report& report);
std::optional<AdviceLine> AdvisePageableMemory(const Report& report);
std::optional<AdviceLine> AdviseSlowPeriods(const Report& report);
std::optional<AdviceLine> AdviseSlowRank(const Report& report);
std::optional<AdviceLine> AdviseSmallKernels(const Report& report);
std::optional<AdviceLine> AdviseStraggler(const Report& report);
std::optional<AdviceLine> AdviseSynchronousCopies(const Report& report);
std::optional<AdviceLine> AdviseSynchronousSets(const Report& report);
std::optional<AdviceLine> AdviseTailEffect(const Report& report);

// How much evidence of a kind an advice names.
inline constexpr size_t kMaxEvidence = 3;

// The rank with the largest `loss(rank)` among those whose loss is at least a share of their span, and how
// many those are; null if there are none. Ranks whose span is below a hundredth of the longest don't count:
// of a device that a process only touched nothing can be gained.
struct WorstRank {
  const RankLine* rank = nullptr;
  int64_t loss_ns = 0;
  int64_t affected = 0;
};
template <class Loss>
WorstRank FindWorstRank(const Report& report, double share, Loss loss) {
  constexpr int64_t kHundredth = 100;
  int64_t longest_ns = 0;
  for (const RankLine& rank : report.ranks) longest_ns = std::max(longest_ns, rank.span_ns);
  WorstRank worst;
  for (const RankLine& rank : report.ranks) {
    if (rank.span_ns < longest_ns / kHundredth) continue;
    const int64_t loss_ns = loss(rank);
    if (loss_ns <= 0 || static_cast<double>(loss_ns) < share * static_cast<double>(rank.span_ns)) continue;
    ++worst.affected;
    if (worst.rank != nullptr && loss_ns <= worst.loss_ns) continue;
    worst.rank = &rank;
    worst.loss_ns = loss_ns;
  }
  return worst;
}

// The clock of a rank; null without samples.
const ClockLine* ClockOf(const Report& report, const RankLine& rank);
// Whether the clock was low in most of the slow time, and more often than in the rest.
bool IsThrottled(const ClockLine& clock, int64_t span_ns);

// What kernels took beyond as many at a ratio of 1.
int64_t ExcessOf(int64_t taken_ns, double ratio);

// Advice for a rank.
AdviceLine AdviceFor(const WorstRank& worst, std::string_view rule);

// A stretch of time, given since the first GPU event of its rank, in the clock of the rank's trace.
AdviceLine::Place PlaceAt(const RankLine& rank, int64_t begin_ns, int64_t end_ns);

// The sum of the spans of all ranks.
double AllSpans(const Report& report);

// Whether the program launches CUDA graphs.
bool LaunchesGraphs(const Report& report);

// The first kernels that communicate.
std::vector<std::string> CommunicationNames(const Report& report);

// Of the kernels for which `which(kernel)` holds, those with the most launches.
template <class Which>
std::vector<std::string> MostLaunched(const Report& report, Which which) {
  std::vector<const DurationLine*> kernels;
  for (const DurationLine& kernel : report.kernels)
    if (which(kernel)) kernels.push_back(&kernel);
  std::ranges::stable_sort(kernels, std::greater<>(), &DurationLine::count);
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(kernels.size(), kMaxEvidence); ++i) names.push_back(kernels[i]->name);
  return names;
}

}  // namespace gpusonde::analyze
