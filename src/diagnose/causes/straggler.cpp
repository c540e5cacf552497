// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"
#include "diagnose/explain.h"

namespace gpusonde::diagnose {
namespace {

// All ranks of a job wait for the one that comes last, so whatever delays that one delays all of them.
constexpr std::array kStatesOf = {State::kPeer};

// What the last rank did with most of the lost time.
struct Activity {
  State state;
  std::string_view cause;  // the cause that it suggests, if a single thread's time can tell
  std::string_view text;
};
constexpr std::array kActivities = {
    Activity{State::kCpu, "slow_cpu", "it ran longer"},
    Activity{State::kRunQueue, "cpu_contention", "it waited for a CPU"},
    Activity{State::kBlockedIo, "block_io", "it waited for a disk"},
    Activity{State::kBlocked, "", "it was blocked in the kernel"},
    Activity{State::kReclaim, "memory_pressure", "it reclaimed memory"},
    Activity{State::kInterrupted, "interrupt_pressure", "interrupts took its CPU"},
    Activity{State::kSleeping, "", "it slept"}};

double RiseOf(const RankPart& rank, State state) { return rank.during[state] - rank.before[state]; }

// Returns the activity with at least half of the lost time; null if there is none.
const Activity* MainActivity(const RankPart& rank) {
  const auto* most = std::ranges::max_element(
      kActivities, {}, [&](const Activity& activity) { return RiseOf(rank, activity.state); });
  return RiseOf(rank, most->state) < rank.rise() / 2 ? nullptr : most;
}

std::string TextOf(const RankPart& rank, const Activity* activity) {
  if (activity == nullptr) return "what it waited for is unknown";
  const auto who = LargestRises(rank.cpu_before, rank.cpu_during, false);
  if (activity->state == State::kRunQueue && !who.empty())
    return fmt::format("{}: {}", activity->text, TakenBy(who));
  return std::string(activity->text);
}

std::optional<Finding> Evaluate(const Situation& situation) {
  const auto last = std::ranges::max_element(situation.ranks, {}, &RankPart::rise);
  if (last == situation.ranks.end() || last->rise() <= 0) return std::nullopt;
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  if (situation.idle_ns >= kHungNs)  // an idle rank hangs, rather than being late
    for (const RankPart& rank : situation.ranks) finding.explained_ns -= rank.idle_rise();
  // One rank that is always last, rather than different ones in turn.
  if (last->rise() > 0.7 * finding.explained_ns) finding.nats += 0.5;
  // Prefer what it did while this program waited: its own incident is about all its steps.
  const Activity* activity = MainActivity(*last);
  const bool has_cause =
      activity == nullptr && !last->cause.empty() && last->cause != kAbstain && last->cause != "straggler";
  // A slow network between the ranks isn't this rank's fault.
  if (last->cause == "network_contention" || last->cause == "packet_loss")
    finding.nats -= activity == nullptr ? 2 : 1;
  finding.root = has_cause ? last->cause : activity != nullptr ? activity->cause : "";
  finding.sentence =
      fmt::format("the step waited for other ranks {}; {} came last, {} a step later than before: {}",
                  ShareOf(situation, State::kPeer), last->name, Millis(last->rise()),
                  has_cause ? last->because : TextOf(*last, activity));
  return finding;
}

}  // namespace

const Cause& Straggler() {
  static constexpr Cause kCause{"straggler", "Straggling rank", kStatesOf, {}, Evaluate};
  return kCause;
}

}  // namespace gpusonde::diagnose
