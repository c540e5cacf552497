// SPDX-License-Identifier: Apache-2.0
#include "diagnose/late_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/time.h"
#include "diagnose/actor.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// A state explains a rank's lateness if it has grown by this share of the time.
constexpr double kLateShare = 0.25;
// A process that ran less than this share of the time did nothing.
constexpr double kIdleShare = 0.001;
// How far back the time before is compared.
constexpr int64_t kBeforeNs = 10 * kNanosPerSecond;

struct Part {
  ThreadState state;
  std::optional<CauseId> cause;
  std::string_view text;
};
constexpr std::array kParts = {
    Part{ThreadState::kRunning, CauseId::kMoreCpuWork, "ran on a CPU"},
    Part{ThreadState::kRunQueue, CauseId::kCpuContention, "waited for a CPU"},
    Part{ThreadState::kBlockedIo, CauseId::kBlockIo, "waited for disks"},
    Part{ThreadState::kBlocked, std::nullopt, "was blocked in the kernel"},
    Part{ThreadState::kWaiting, std::nullopt, "waited for another thread or process"},
    Part{ThreadState::kSleeping, std::nullopt, "slept"},
    Part{ThreadState::kNetwork, std::nullopt, "waited for the network"},
};

// "behind greedy (process 7)": who ran instead, or woke the thread.
std::string Other(const ThreadTime& time, ThreadState state, std::string_view preposition,
                  const Actors& actors) {
  Id128 other;
  double most_ns = 0;
  for (const auto& [who, ns] : time.By(state)) {
    if (ns <= most_ns) continue;
    other = who;
    most_ns = ns;
  }
  return other.IsZero() ? "" : fmt::format(" {} {}", preposition, NameActor(actors.ActorOf(other, {})));
}

RankHost ByThread(const CollectiveRank& rank, const TimeRange& late, const RankContext& context) {
  const ThreadTime during = context.host.Of(rank.process, rank.tid, late);
  const ThreadTime before = context.host.Of(rank.process, rank.tid, {late.from_ns - kBeforeNs, late.from_ns});
  const auto length = static_cast<double>(late.to_ns - late.from_ns);
  const double length_before = before.total() > 0 ? static_cast<double>(kBeforeNs) : 1;
  const Part* most = nullptr;
  double most_share = 0;
  for (const Part& part : kParts) {
    const double rise = during[part.state] / length - before[part.state] / length_before;
    if (rise <= most_share) continue;
    most = &part;
    most_share = rise;
  }
  if (most == nullptr || most_share < kLateShare) return {};
  const bool queued = most->state == ThreadState::kRunQueue;
  const bool waited = most->state == ThreadState::kWaiting;
  return {.cause = most->cause,
          .sentence =
              fmt::format("The thread that calls NCCL {} {} of the time ({} before){}.", most->text,
                          Percent(during[most->state], length), Percent(before[most->state], length_before),
                          queued   ? Other(during, most->state, "behind", context.actors)
                          : waited ? Other(during, most->state, "until", context.actors)
                                   : "")};
}

}  // namespace

RankHost ExplainRank(const CollectiveRank& rank, int64_t from_ns, int64_t to_ns, const RankContext& context) {
  const model::Process* process = context.actors.Find(rank.process);
  if (process != nullptr && process->exited_ns.value_or(INT64_MAX) <= to_ns)
    return {.cause = CauseId::kHang,
            .sentence = fmt::format("Its process ended at {}.", FormatUtc(*process->exited_ns))};
  if (to_ns <= from_ns || !context.host.Knows(rank.process)) return {};
  // The states of a wait are known when it ends: of a process that does nothing at all there are none.
  if (context.host.RunningOf(rank.process, {from_ns, to_ns}) <
      kIdleShare * static_cast<double>(to_ns - from_ns))
    return {.cause = CauseId::kHang,
            .sentence = fmt::format(
                "None of its threads has run since {}: it is stopped, or waits for something that "
                "does not come.",
                FormatUtc(from_ns))};
  const auto own = context.last_reports.find(rank.process);
  if (own != context.last_reports.end() && !own->second.end_ns.has_value() && own->second.cause.has_value() &&
      own->second.cause != CauseId::kHang && own->second.cause != CauseId::kStraggler)
    return {.cause = own->second.cause, .sentence = fmt::format("On that rank, {}.", own->second.because)};
  return ByThread(rank, {from_ns, to_ns}, context);
}

std::string NameRank(const CollectiveRank& rank, const Actors& actors) {
  const model::Process* process = actors.Find(rank.process);
  if (process == nullptr) return fmt::format("rank {}", rank.rank);
  return fmt::format("rank {} ({}, process {})", rank.rank, Printable(process->name), process->pid);
}

}  // namespace gpusonde::diagnose
