// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"

namespace gpusonde::analyze {
namespace {

std::string_view ActionFor(const TransferLine& copy) {
  if (copy.kind == "dtod")
    return "Work in place or on views, or let the kernels that use the data read it where it is.";
  if (copy.kind == "ptop")
    return "Copy in parts, on a stream of its own, while kernels work on the parts that have arrived.";
  return "Copy what is needed next on a stream of its own, from and to pinned memory, while kernels run "
         "(prefetching); keep on the device what is used again; or copy less, in smaller types.";
}

}  // namespace

// Copies and sets while no kernel runs. Where the reason is that copies block the host or that its memory
// isn't pinned, the rules about these say more.
std::optional<AdviceLine> AdviseExposedCopies(const Report& report) {
  if (report.memcpys.empty() || AdviseSynchronousCopies(report).has_value() ||
      AdvisePageableMemory(report).has_value())
    return std::nullopt;
  const auto loss = [](const RankLine& rank) { return rank.only_transfer_ns(); };
  const WorstRank worst = FindWorstRank(report, thresholds::kExposedCopies, loss);
  if (worst.rank == nullptr) return std::nullopt;
  const TransferLine& most = report.memcpys.front();
  AdviceLine advice = AdviceFor(worst, "exposed_copies");
  advice.finding = fmt::format("{} of {} of copies and sets had no concurrent kernel", Time(worst.loss_ns),
                               Time(worst.rank->transfer_ns));
  advice.action = ActionFor(most);
  advice.gain_basis = "the copies and sets without a concurrent kernel";
  const std::string moved = most.bytes > 0
                                ? fmt::format(" of {} at {} GB/s", Bytes(most.bytes),
                                              GigabytesPerSecond(most.bytes, most.durations.total_ns))
                                : "";
  advice.names = {fmt::format("{} {} -> {} ({} {}{})", most.kind, most.source, most.target,
                              most.durations.count, most.durations.count == 1 ? "copy" : "copies", moved)};
  return advice;
}

}  // namespace gpusonde::analyze
