// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"
#include "base/counted.h"

namespace gpusonde::analyze {

// Launches that block as the queue is full: the opposite of launch-bound. The GPU gains nothing, but who
// looks at the host sees long launches and may take them for the problem. A GPU that is idle meanwhile waits
// for something else, as another rank.
std::optional<AdviceLine> AdviseFullQueue(const Report& report) {
  const WorstRank worst = FindWorstRank(report, thresholds::kFullQueue, [](const RankLine& rank) {
    const bool is_busy =
        static_cast<double>(rank.idle_ns) <= thresholds::kIdleBehindQueue * static_cast<double>(rank.span_ns);
    return is_busy ? rank.full_queue.blocked_ns : 0;
  });
  if (worst.rank == nullptr) return std::nullopt;
  const FullQueueLine& queue = worst.rank->full_queue;
  AdviceLine advice = AdviceFor(worst, "full_queue");
  advice.gain_ns = 0;
  advice.finding = fmt::format(
      "{} took {} in total, as about 1,000 launches were waiting on their stream already, which is as many "
      "as CUDA queues; the GPU was busy for {} of the time",
      Counted(queue.count, "launch call"), Time(queue.blocked_ns),
      Percent(worst.rank->busy_ns, worst.rank->span_ns));
  advice.action =
      "The GPU is the limit, not the host: make kernels faster or fewer, and don't tune the launching code. "
      "If its thread has other work, such as preparing data, give that to another thread, as this one is "
      "blocked.";
  advice.gain_basis = "the GPU had work meanwhile; only the launching thread lost time";
  advice.names = MostLaunched(report, [](const DurationLine&) { return true; });
  for (const HostGapsLine::Gap& gap : queue.longest)
    advice.places.push_back(PlaceAt(*worst.rank, gap.begin_ns, gap.end_ns));
  return advice;
}

}  // namespace gpusonde::analyze
