// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"
#include "analyze/sync_calls.h"
#include "base/counted.h"

namespace gpusonde::analyze {

// Calls of copies that block the host, which so launches nothing meanwhile.
std::optional<AdviceLine> AdviseSynchronousCopies(const Report& report) {
  AdviceLine advice{.rule = "synchronous_copies", .ranks = static_cast<int64_t>(report.ranks.size())};
  int64_t count = 0, total_ns = 0;
  for (const DurationLine& call : report.api_calls) {
    if (!IsBlockingCopy(call.name)) continue;
    count += call.count;
    total_ns += call.total_ns;
    if (advice.names.size() < kMaxEvidence) advice.names.push_back(call.name);
  }
  const double spans_ns = AllSpans(report);
  if (count == 0 || static_cast<double>(total_ns) < thresholds::kSynchronousCopies * spans_ns)
    return std::nullopt;
  double idle_ns = 0;
  for (const RankLine& rank : report.ranks)
    idle_ns += static_cast<double>(rank.idle.host_ns + rank.transfer_ns - rank.transfer_overlap_ns);
  const auto ranks = static_cast<double>(advice.ranks);
  advice.gain_ns = std::llround(std::min(idle_ns, static_cast<double>(total_ns)) / std::max(1.0, ranks));
  advice.span_ns = std::llround(spans_ns / std::max(1.0, ranks));
  if (advice.gain_ns <= 0) return std::nullopt;
  advice.finding =
      fmt::format("{} of copies that block the host took {}", Counted(count, "call"), Time(total_ns));
  advice.action =
      "Copy asynchronously on a stream of its own, from and to pinned memory, and wait only where the result "
      "is used.";
  advice.gain_basis =
      "the time of these calls, up to that in which the GPU only copied or waited for the host, per rank";
  return advice;
}

}  // namespace gpusonde::analyze
