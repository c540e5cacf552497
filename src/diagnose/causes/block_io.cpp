// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The step waits for disks. If another process uses them more than before it is contention; if none does, the
// disk is slow or the program reads more.
constexpr std::array kBlockIoStates = {State::kBlockedIo, State::kBlocked};
constexpr std::array kBlockIoExpectations = {
    Expectation{model::Metric::kHostPressureIo, Expectation::Direction::kRises, &kWeights.pressure.io_rise,
                &kWeights.pressure.io, "tasks waited for I/O longer than before"},
};

constexpr std::array kBlockIoSupersedes = {Superseded{
    CauseId::kIoThrottling,
    // If most of the wait remains beyond the limit's part, contention is more likely.
    [](const Situation& situation) -> double {
      const double at_limit_ns = std::max(situation.excess(State::kIoThrottled), 0.0);
      return at_limit_ns < situation.excess(State::kBlockedIo) ? kWeights.block_io.over_io_throttling : 0.0;
    }}};

std::optional<Finding> EvaluateBlockIo(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kBlockIoStates)};
  if (!IsBlockedByDisks(situation)) return std::nullopt;
  finding.sentence =
      fmt::format("the step waited for disks {}",
                  Percent(situation.during[State::kBlockedIo] + situation.during[State::kBlocked],
                          situation.during.total()) +
                      " of the time");
  if (const auto user = DiskUser(situation); user.has_value()) {
    const auto& [actor, bytes] = *user;
    if (!actor.own) finding.nats += kWeights.block_io.user_known;
    finding.sentence +=
        fmt::format("; {} read or wrote {:.0f} MB/s more than before",
                    actor.own ? "the program's own " + actor.name : NameActor(actor), bytes / 1e6);
    if (actor.own) finding.sentence += ", as it does more I/O, or as its files have left the page cache";
  } else {
    finding.nats -= kWeights.block_io.user_unknown;
    finding.sentence += "; no process read or wrote more than before";
  }
  return finding;
}

}  // namespace

const Cause& BlockIo() {
  static constexpr Cause kCause{
      CauseId::kBlockIo,
      "block_io",
      "Block-I/O contention",
      "Limit the other users of the disk (io.max), keep what it reads in memory, or read from another disk.",
      kBlockIoStates,
      kBlockIoExpectations,
      kBlockIoSupersedes,
      EvaluateBlockIo};
  return kCause;
}

}  // namespace gpusonde::diagnose
