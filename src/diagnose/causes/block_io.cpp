// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The step waits for disks. If another process uses them more than before it is contention; if none does, the
// disk is slow or the program reads more.
constexpr std::array kStatesOf = {State::kBlockedIo, State::kBlocked};
constexpr std::array kExpectations = {
    Expectation{model::Metric::kHostPressureIo, Expectation::Direction::kRises, 0.05, 0.5,
                "tasks waited for I/O longer than before"},
};

std::optional<Finding> Evaluate(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  // Blocked time without I/O wait or I/O pressure may be a lock, or anything else.
  if (situation.excess(State::kBlockedIo) < finding.explained_ns / 10 &&
      situation.Of(model::Metric::kHostPressureIo).rise() < 0.05)
    return std::nullopt;
  finding.sentence =
      fmt::format("the step waited for disks {}",
                  Percent(situation.during[State::kBlockedIo] + situation.during[State::kBlocked],
                          situation.during.total()) +
                      " of the time");
  // At an I/O limit, waiting for the disk is mostly waiting for the limit.
  if (situation.excess(State::kIoThrottled) > finding.explained_ns) finding.nats -= 2;
  constexpr double kNoticeable = 1e6;  // bytes per second
  const auto who = LargestRises(situation.disk_before, situation.disk_during, false);
  const auto own = LargestRises(situation.disk_before, situation.disk_during, true);
  if (!who.empty() && who.front().second > kNoticeable) {
    finding.nats += 1;
    finding.sentence += fmt::format("; {} read or wrote {:.0f} MB/s more than before",
                                    NameActor(who.front().first), who.front().second / 1e6);
  } else if (!own.empty() && own.front().second > kNoticeable) {
    if (IsReclaimingMemory(situation)) finding.nats -= 1.5;
    finding.sentence += fmt::format("; the program's own {} read or wrote {:.0f} MB/s more than before",
                                    own.front().first.name, own.front().second / 1e6);
  } else {
    finding.nats -= 0.5;
    finding.sentence += "; no process read or wrote more than before";
  }
  return finding;
}

}  // namespace

const Cause& BlockIo() {
  static constexpr Cause kCause{"block_io", "Block-I/O contention", kStatesOf, kExpectations, Evaluate};
  return kCause;
}

}  // namespace gpusonde::diagnose
