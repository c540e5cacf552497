// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"
#include "diagnose/explain.h"

namespace gpusonde::diagnose {
namespace {

// The others of a job wait for the rank that comes last: that is why they are slow, and why that one is, is
// why all are.
constexpr std::array kStatesOf = {State::kPeer};

// What it did with most of the time that was lost.
struct Deed {
  State state;
  std::string_view cause;  // that it speaks for, of those that a single thread tells of
  std::string_view text;
};
constexpr std::array kDeeds = {
    Deed{State::kCpu, "slow_cpu", "it ran longer"},
    Deed{State::kRunQueue, "cpu_contention", "it waited for a CPU that others had"},
    Deed{State::kBlockedIo, "block_io", "it waited for a disk"},
    Deed{State::kBlocked, "", "it was blocked within the kernel"},
    Deed{State::kReclaim, "memory_pressure", "it looked for memory to free"},
    Deed{State::kInterrupted, "interrupt_pressure", "interrupts took its CPU"},
    Deed{State::kSleeping, "", "it slept"}};

double RiseOf(const RankPart& rank, State state) { return rank.during[state] - rank.before[state]; }

// Nothing where none of these is half of it.
const Deed* DeedOf(const RankPart& rank) {
  const auto* most =
      std::ranges::max_element(kDeeds, {}, [&](const Deed& deed) { return RiseOf(rank, deed.state); });
  return RiseOf(rank, most->state) < rank.rise() / 2 ? nullptr : most;
}

std::string TextOf(const RankPart& rank, const Deed* deed) {
  if (deed == nullptr) return "what it waited for itself is not known";
  const auto who = WhoRose(rank.cpu_before, rank.cpu_during, false);
  if (deed->state == State::kRunQueue && !who.empty()) return fmt::format("{}: {}", deed->text, TakenBy(who));
  return std::string(deed->text);
}

std::optional<Finding> Look(const Situation& situation) {
  const auto last = std::ranges::max_element(situation.ranks, {}, &RankPart::rise);
  if (last == situation.ranks.end() || last->rise() <= 0) return std::nullopt;
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  if (situation.idle_ns >= kHungNs)  // it isn't late, it hangs
    for (const RankPart& rank : situation.ranks) finding.explained_ns -= rank.idle_rise();
  // One that is always last, against turns that all of them take.
  if (last->rise() > 0.7 * finding.explained_ns) finding.nats += 0.5;
  // What its own steps say is about all of them, those that nobody waited for too.
  const Deed* deed = DeedOf(*last);
  const bool told =
      deed == nullptr && !last->cause.empty() && last->cause != kAbstain && last->cause != "straggler";
  // The network between them is not that one's alone.
  if (last->cause == "network_contention" || last->cause == "packet_loss")
    finding.nats -= deed == nullptr ? 2 : 1;
  finding.root = told ? last->cause : deed != nullptr ? deed->cause : "";
  finding.sentence =
      fmt::format("it waited for other ranks {}; {} came last, {} a step later than before: {}",
                  ShareOf(situation, State::kPeer), last->name, Millis(last->rise()),
                  told ? last->because : TextOf(*last, deed));
  return finding;
}

}  // namespace

const Cause& Straggler() {
  static constexpr Cause kCause{"straggler", "Straggling rank", kStatesOf, {}, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
