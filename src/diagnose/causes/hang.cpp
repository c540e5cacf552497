// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// A step doesn't end and no GPU work is launched any more, or it ended after seconds in which nothing was
// done. If it waited for an idle rank, that rank is named.

constexpr std::array kHangStates = {State::kUnexplained, State::kWaiting};

std::optional<Finding> EvaluateHang(const Situation& situation) {
  if (!situation.unfinished && situation.idle_ns >= kHungNs) {
    Finding finding{.explained_ns = ExcessOf(situation, kHangStates)};
    std::string_view who = "an unknown process";
    double longest_ns = finding.explained_ns;
    for (const RankPart& rank : situation.ranks) {
      finding.explained_ns += rank.idle_rise();
      if (rank.idle_rise() <= longest_ns) continue;
      longest_ns = rank.idle_rise();
      who = rank.name;
    }
    finding.sentence =
        fmt::format("a step waited {:.0f} s for {}, which did nothing", situation.idle_ns / 1e9, who);
    return finding;
  }
  if (!situation.unfinished || situation.silent_ns < kHungNs) return std::nullopt;
  Finding finding{.explained_ns = situation.excess_ns()};
  finding.sentence =
      fmt::format("no step has ended for {:.0f} s, and there was no GPU work for {:.0f} s",
                  situation.during.total() / 1e9, static_cast<double>(situation.silent_ns) / 1e9);
  return finding;
}

}  // namespace

const Cause& Hang() {
  static constexpr Cause kCause{
      CauseId::kHang, "hang", "Hang", "Look at the stacks of the process that is waited for (gpusonde view).",
      kHangStates,    {},     {},     EvaluateHang};
  return kCause;
}

}  // namespace gpusonde::diagnose
