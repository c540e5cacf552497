// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "analyze/findings/job.h"
#include "analyze/stats/inference.h"

namespace gpusonde::analyze {
namespace {

// A window with enough kernels to judge it.
struct Judged {
  const JobRank* rank;
  const Window* window;
  double z;
};

std::vector<Judged> Judge(const Job& job) {
  std::vector<Judged> judged;
  for (const JobRank& rank : job.ranks)
    for (const Window& window : rank.result.kernels.windows)
      if (window.kernels >= kMinSamples && window.variance > 0)
        judged.push_back({&rank, &window, window.excess / std::sqrt(window.variance)});
  return judged;
}

double RatioOf(double excess, int64_t kernels) {
  return std::exp2(excess / static_cast<double>(kernels) / kLogUnits);
}

}  // namespace

std::vector<WindowLine> FindAnomalousWindows(const Job& job) {
  const std::vector<Judged> judged = Judge(job);
  std::vector<double> p;
  for (const Judged& one : judged) p.push_back(NormalTail(one.z));
  const std::vector<bool> significant = Significant(p);
  std::vector<WindowLine> lines;
  double excess = 0;  // of the last line
  const Window* last = nullptr;
  for (size_t i = 0; i < judged.size(); ++i) {
    const auto& [rank, window, z] = judged[i];
    if (!significant[i] || RatioOf(window->excess, window->kernels) < kMinRatio) continue;
    if (last == nullptr || last + 1 != window) {
      lines.push_back({.rank = rank->number, .begin_ns = window->begin_ns - rank->result.extent.first_ns});
      excess = 0;
    }
    last = window;
    WindowLine& line = lines.back();
    line.end_ns = window->end_ns - rank->result.extent.first_ns;
    line.kernels += window->kernels;
    line.kernel_ns += window->kernel_ns;
    line.z = std::max(line.z, z);
    excess += window->excess;
    line.ratio = RatioOf(excess, line.kernels);
  }
  return lines;
}

}  // namespace gpusonde::analyze
