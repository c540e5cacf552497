// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// A step doesn't end and no GPU work is launched any more, or it ended after seconds in which nothing was
// done: the program was stopped, or waited. If it waited for an idle rank, that rank is named.

constexpr std::array kHangStates = {State::kStopped, State::kBlocked, State::kUnexplained, State::kWaiting};

bool HungForAWhile(const Situation& situation) {
  return !situation.unfinished && situation.idle_ns >= kHungNs;
}

constexpr std::array kHangSupersedes = {
    Superseded{CauseId::kStopped, [](const Situation& situation) -> double {
                 return HungForAWhile(situation) ? kWeights.stopped.hang : 0.0;
               }}};

// As a process in state D: nfs(5) with a server that is gone, a device that is.
constexpr std::string_view kBlockers = "as by a disk or a file server that doesn't answer";

std::optional<Finding> DescribeWait(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kHangStates)};
  const bool blocked = situation.excess(State::kBlocked) > finding.explained_ns / 2;
  if (blocked && IsBlockedByDisks(situation)) return std::nullopt;
  const bool stopped = situation.excess(State::kStopped) > finding.explained_ns / 2;
  const std::optional<Actor> helper = stopped ? StoppedHelper(situation) : std::nullopt;
  const auto outside = LargestRises(situation.outside_before, situation.outside_during, false);
  const double idle_s = situation.idle_ns / 1e9;
  if (blocked)
    finding.sentence = fmt::format("a step was blocked in the kernel for {:.0f} s, {}", idle_s, kBlockers);
  else if (helper.has_value())
    finding.sentence = fmt::format("a step waited {:.0f} s for {}, which was stopped {}{}", idle_s,
                                   NameActor(*helper), kStoppers, LetContinue(situation));
  else if (stopped)
    finding.sentence =
        fmt::format("a step was stopped for {:.0f} s, {}{}", idle_s, kStoppers, LetContinue(situation));
  else if (situation.own_threads_idle_during - situation.own_threads_idle_before > finding.explained_ns / 2)
    finding.sentence =
        fmt::format("a step waited {:.0f} s for other threads of its process, which did nothing", idle_s);
  else if (!outside.empty() && outside.front().second > finding.explained_ns / 2)
    finding.sentence = fmt::format("a step waited {:.0f} s for {}, which is not a part of the program",
                                   idle_s, NameActor(outside.front().first));
  else
    finding.sentence =
        fmt::format("a step waited {:.0f} s for an unknown process, which did nothing", idle_s);
  double longest_ns = finding.explained_ns;
  for (const RankPart& rank : situation.ranks) {
    finding.explained_ns += rank.idle_rise();
    if (rank.idle_rise() <= longest_ns) continue;
    longest_ns = rank.idle_rise();
    const bool rank_stopped = rank.during[State::kStopped] - rank.before[State::kStopped] > longest_ns / 2;
    finding.sentence = fmt::format("a step waited {:.0f} s for {}, which {}", idle_s, rank.name,
                                   rank_stopped ? fmt::format("was stopped {}", kStoppers) : "did nothing");
  }
  return finding;
}

// How likely a process keeps the step from ending, the likeliest first.
enum class Likely : uint8_t {
  kEndedLoader,
  kEnded,
  kStoppedLoader,
  kBlockedLoader,
  kIdleLoader,
  kBusyLoader
};
Likely LikelyOf(const HelperPart& helper) {
  constexpr double kIdle = 0.01;  // of a CPU
  if (helper.ended) return helper.waited_for ? Likely::kEndedLoader : Likely::kEnded;
  if (helper.stopped) return Likely::kStoppedLoader;
  if (helper.blocked) return Likely::kBlockedLoader;
  return helper.busy < kIdle ? Likely::kIdleLoader : Likely::kBusyLoader;
}

// "; loader (process 412), which it had waited for before, ended".
std::string WaitedFor(const Situation& situation) {
  const auto likeliest = std::ranges::min_element(situation.helpers, {}, LikelyOf);
  if (likeliest == situation.helpers.end()) return "";
  const Likely likely = LikelyOf(*likeliest);
  const auto alike = std::ranges::count(situation.helpers, likely, LikelyOf) - 1;
  constexpr std::array kDid = {", which it had waited for before, ended",
                               ", which it had started, ended",
                               ", which it had waited for before, is stopped by a signal or a tracer",
                               ", which it had waited for before, is blocked in the kernel",
                               ", which it had waited for before, did nothing either",
                               ", which it had waited for before, ran"};
  return fmt::format("; {}{}{}", likeliest->name, alike > 0 ? fmt::format(" and {} more", alike) : "",
                     kDid.at(static_cast<size_t>(likely)));
}

std::optional<Finding> EvaluateHang(const Situation& situation) {
  if (HungForAWhile(situation)) return DescribeWait(situation);
  if (!MakesNoProgress(situation) || WorksWithoutGpu(situation)) return std::nullopt;
  Finding finding{.explained_ns = situation.excess_ns()};
  finding.sentence =
      fmt::format("no step has ended for {:.0f} s, and there was no GPU work for {:.0f} s",
                  situation.unfinished_ns / 1e9, static_cast<double>(situation.silent_ns) / 1e9);
  if (situation.Of(model::Metric::kProcessStopped).during.value_or(0) > kWeights.stopped.hung)
    finding.sentence += "; the process is stopped by a signal or a tracer";
  else if (situation.Of(model::Metric::kProcessBlocked).during.value_or(0) > kWeights.hang.blocked)
    finding.sentence += fmt::format("; a thread of it is blocked in the kernel, {}", kBlockers);
  else if (situation.excess(State::kCpu) > kWeights.hang.worked * situation.excess_ns())
    finding.sentence += "; the launch thread ran: it spins in a wait for the GPU, or computes";
  else
    finding.sentence += WaitedFor(situation);
  return finding;
}

}  // namespace

const Cause& Hang() {
  static constexpr Cause kCause{
      CauseId::kHang,  "hang",
      "Hang",          "Look at the stacks of the process that is waited for (gpusonde view).",
      kHangStates,     {},
      kHangSupersedes, EvaluateHang};
  return kCause;
}

}  // namespace gpusonde::diagnose
