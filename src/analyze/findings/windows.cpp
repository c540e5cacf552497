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

// What the kernels of windows took beside what they would have taken at other times. Kernels count by their
// time: many small ones that take much longer cost little beside large ones that don't.
struct Times {
  double taken_ns = 0;
  double expected_ns = 0;

  void Add(const Window& window) {
    taken_ns += window.taken_ns;
    expected_ns += window.expected_ns;
  }
  double ratio() const { return expected_ns > 0 ? taken_ns / expected_ns : 1; }
};

}  // namespace

std::vector<WindowLine> FindAnomalousWindows(const Job& job) {
  const std::vector<Judged> judged = Judge(job);
  std::vector<double> p;
  for (const Judged& one : judged) p.push_back(NormalTail(one.z));
  const std::vector<bool> significant = Significant(p);
  std::vector<WindowLine> lines;
  Times times;  // of the last line
  const Window* last = nullptr;
  for (size_t i = 0; i < judged.size(); ++i) {
    const auto& [rank, window, z] = judged[i];
    if (!significant[i] || Times{window->taken_ns, window->expected_ns}.ratio() < kMinRatio) continue;
    if (last == nullptr || last + 1 != window) {
      lines.push_back({.rank = rank->number, .begin_ns = window->begin_ns - rank->result.extent.first_ns});
      times = {};
    }
    last = window;
    WindowLine& line = lines.back();
    line.end_ns = window->end_ns - rank->result.extent.first_ns;
    line.kernels += window->kernels;
    line.kernel_ns += window->kernel_ns;
    line.z = std::max(line.z, z);
    times.Add(*window);
    line.ratio = times.ratio();
  }
  return lines;
}

}  // namespace gpusonde::analyze
