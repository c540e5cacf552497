// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"

namespace gpusonde::analyze {

// Many kernels that are about as short as the gaps between them.
std::optional<AdviceLine> AdviseSmallKernels(const Report& report) {
  const auto is_small = [](const DurationLine& kernel) { return kernel.p50_ns < thresholds::kSmallKernel; };
  int64_t all = 0, small = 0, small_ns = 0;
  for (const DurationLine& kernel : report.kernels) {
    all += kernel.count;
    if (!is_small(kernel)) continue;
    small += kernel.count;
    small_ns += kernel.total_ns;
  }
  const double share = all > 0 ? static_cast<double>(small) / static_cast<double>(all) : 0;
  if (share < thresholds::kSmallKernels) return std::nullopt;
  const auto loss = [&](const RankLine& rank) {
    return std::llround(share * static_cast<double>(rank.idle.back_to_back_ns));
  };
  const WorstRank worst = FindWorstRank(report, thresholds::kBackToBack, loss);
  if (worst.rank == nullptr) return std::nullopt;
  AdviceLine advice = AdviceFor(worst, "small_kernels");
  advice.finding = fmt::format(
      "{} of {} launches were of kernels that typically take less than 10 µs, {} in total; the GPU was idle "
      "for {} between one event and the next",
      small, all, Time(small_ns), Time(worst.rank->idle.back_to_back_ns));
  advice.action =
      LaunchesGraphs(report)
          ? "Fuse small kernels (torch.compile, fused optimizers), also those within the CUDA graphs that "
            "the program launches: a graph makes gaps shorter and doesn't remove them."
          : "Fuse small kernels (torch.compile, fused optimizers), or launch them as a CUDA graph.";
  advice.gain_basis =
      "the idle time between one event and the next, by the share of small kernels in the launches";
  advice.names = MostLaunched(report, is_small);
  return advice;
}

}  // namespace gpusonde::analyze
