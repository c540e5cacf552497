// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"

namespace gpusonde::analyze {

namespace {

bool HasPageable(const TransferLine& copy) {
  return (copy.kind == "htod" && copy.source == "pageable") ||
         (copy.kind == "dtoh" && copy.target == "pageable");
}

// Copies of pinned memory in the same direction that can be compared by their rate; null if there are none.
const TransferLine* PinnedLike(const Report& report, const TransferLine& copy) {
  const auto mean_bytes = [](const TransferLine& line) {
    return static_cast<double>(line.bytes) / static_cast<double>(std::max<int64_t>(1, line.durations.count));
  };
  for (const TransferLine& line : report.memcpys) {
    const bool is_pinned =
        line.kind == copy.kind && (copy.kind == "htod" ? line.source : line.target) == "pinned";
    if (!is_pinned || line.durations.count < thresholds::kPinnedCopies || line.bytes == 0) continue;
    const double ratio = mean_bytes(line) / std::max(1.0, mean_bytes(copy));
    if (ratio <= thresholds::kComparableSizes && ratio >= 1 / thresholds::kComparableSizes) return &line;
  }
  return nullptr;
}

}  // namespace

// Copies from and to memory that isn't pinned: the driver copies it once more, and the host waits.
std::optional<AdviceLine> AdvisePageableMemory(const Report& report) {
  int64_t count = 0, total_ns = 0, bytes = 0;
  double gain_ns = 0;
  bool compared = true;
  for (const TransferLine& copy : report.memcpys) {
    if (!HasPageable(copy)) continue;
    count += copy.durations.count;
    total_ns += copy.durations.total_ns;
    bytes += copy.bytes;
    const TransferLine* const pinned = PinnedLike(report, copy);
    compared = compared && pinned != nullptr;
    if (pinned != nullptr)
      gain_ns += std::max(0.0, static_cast<double>(copy.durations.total_ns) -
                                   static_cast<double>(copy.bytes) *
                                       static_cast<double>(pinned->durations.total_ns) /
                                       static_cast<double>(pinned->bytes));
  }
  const double spans_ns = AllSpans(report);
  if (count == 0 || static_cast<double>(total_ns) < thresholds::kPageableCopies * spans_ns)
    return std::nullopt;
  double alone_ns = 0;
  for (const RankLine& rank : report.ranks)
    alone_ns += static_cast<double>(rank.transfer_ns - rank.transfer_overlap_ns);
  if (!compared) gain_ns = std::min(alone_ns, static_cast<double>(total_ns));
  const auto ranks = static_cast<int64_t>(report.ranks.size());
  AdviceLine advice{.rule = "pageable_memory", .ranks = ranks};
  advice.gain_ns = std::llround(gain_ns / static_cast<double>(ranks));
  advice.span_ns = std::llround(spans_ns / static_cast<double>(ranks));
  if (advice.gain_ns <= 0) return std::nullopt;
  advice.finding =
      fmt::format("copies from or to pageable memory ({}, {}) took {}", count, Bytes(bytes), Time(total_ns));
  advice.action =
      "Pin the host's memory (pin_memory=True, cudaHostAlloc) and copy asynchronously (non_blocking=True).";
  advice.gain_basis = compared ? "these copies at the rate of the trace's copies of pinned memory, per rank"
                               : "the copies beside which no kernel ran, up to the time of these, per rank";
  return advice;
}

}  // namespace gpusonde::analyze
