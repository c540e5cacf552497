// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// All ranks of a job wait for the one that comes last, so whatever delays that one delays all of them.
constexpr std::array kStragglerStates = {State::kPeer};

std::string WaitedFor(const RankPart& rank, const RankActivity* activity) {
  if (activity == nullptr) return "what it waited for is unknown";
  if (activity->state == State::kRunQueue)
    if (const std::string who =
            TakenByOthers(LargestRises(rank.cpu_before, rank.cpu_during, false), rank.rise());
        !who.empty())
      return fmt::format("{}: {}", activity->text, who);
  return std::string(activity->text);
}

std::optional<Finding> EvaluateStraggler(const Situation& situation) {
  const RankPart* last = LastRank(situation);
  if (last == nullptr) return std::nullopt;
  Finding finding{.explained_ns = ExcessOf(situation, kStragglerStates)};
  if (situation.idle_ns >= kHungNs)  // an idle rank hangs, rather than being late
    for (const RankPart& rank : situation.ranks) finding.explained_ns -= rank.idle_rise();
  // One rank that is always last, rather than different ones in turn.
  if (last->rise() > kWeights.straggler.main_share * finding.explained_ns)
    finding.nats += kWeights.straggler.same_rank;
  // Prefer what it did while this program waited: its own incident is about all its steps.
  const RankActivity* activity = MainActivity(*last);
  const bool has_cause =
      activity == nullptr && last->cause.value_or(CauseId::kStraggler) != CauseId::kStraggler;
  if (has_cause) finding.root = last->cause;
  if (activity != nullptr) finding.root = activity->cause;
  finding.sentence =
      fmt::format("the step waited for other ranks {}; {} came last, {} a step later than before: {}",
                  ShareOf(situation, State::kPeer), last->name, Time(last->rise()),
                  has_cause ? last->because : WaitedFor(*last, activity));
  return finding;
}

}  // namespace

const Cause& Straggler() {
  static constexpr Cause kCause{CauseId::kStraggler,
                                "straggler",
                                "Straggling rank",
                                "Look into the rank that comes last.",
                                kStragglerStates,
                                {},
                                {},
                                EvaluateStraggler};
  return kCause;
}

}  // namespace gpusonde::diagnose
