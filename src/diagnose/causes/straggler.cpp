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

// What it did with most of the time that was lost, where nothing is said of its own steps.
std::string Doing(const RankPart& rank) {
  struct Word {
    State state;
    std::string_view text;
  };
  constexpr std::array kWords = {Word{State::kCpu, "it ran longer"},
                                 Word{State::kRunQueue, "it waited for a CPU that others had"},
                                 Word{State::kBlockedIo, "it waited for a disk"},
                                 Word{State::kBlocked, "it was blocked within the kernel"},
                                 Word{State::kReclaim, "it looked for memory to free"},
                                 Word{State::kInterrupted, "interrupts took its CPU"},
                                 Word{State::kSleeping, "it slept"}};
  const auto rise = [&](const Word& word) { return rank.during[word.state] - rank.before[word.state]; };
  const auto* most = std::ranges::max_element(kWords, {}, rise);
  if (rise(*most) < rank.rise() / 2) return "what it waited for itself is not known";
  const auto who = WhoRose(rank.cpu_before, rank.cpu_during, false);
  if (most->state == State::kRunQueue && !who.empty()) return fmt::format("{}: {}", most->text, TakenBy(who));
  return std::string(most->text);
}

std::optional<Finding> Look(const Situation& situation) {
  const auto last = std::ranges::max_element(situation.ranks, {}, &RankPart::rise);
  if (last == situation.ranks.end() || last->rise() <= 0) return std::nullopt;
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  // One that is always last, against turns that all of them take.
  if (last->rise() > 0.7 * finding.explained_ns) finding.nats += 0.5;
  // The network between them is not that one's alone.
  if (last->cause == "network_contention" || last->cause == "packet_loss") finding.nats -= 2;
  const bool told = !last->cause.empty() && last->cause != kAbstain && last->cause != "straggler";
  finding.sentence =
      fmt::format("it waited for other ranks {}; {} came last, {} a step later than before: {}",
                  ShareOf(situation, State::kPeer), last->name, Millis(last->rise()),
                  told ? last->because : Doing(*last));
  if (told) finding.root = last->cause;
  return finding;
}

}  // namespace

const Cause& Straggler() {
  static constexpr Cause kCause{"straggler", "Straggling rank", kStatesOf, {}, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
