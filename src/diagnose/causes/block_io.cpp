// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// Disks keep the step waiting. Who else uses them says whether that is contention; where nobody does more
// than before it is a slow disk, or the program reads more.
constexpr std::array kStatesOf = {State::kBlockedIo, State::kBlocked};
constexpr std::array kCases = {
    Case{model::Metric::kHostPressureIo, Case::Expect::kRises, 0.05, 0.5,
         "somebody waited for I/O more than before"},
};

std::optional<Finding> Look(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStatesOf)};
  // Without a wait that the kernel counts as one for a device it is a lock, or anything.
  if (situation.excess(State::kBlockedIo) < finding.explained_ns / 10 &&
      situation.Of(model::Metric::kHostPressureIo).rise() < 0.05)
    return std::nullopt;
  finding.sentence =
      fmt::format("what feeds the GPU waited for disks {}",
                  Percent(situation.during[State::kBlockedIo] + situation.during[State::kBlocked],
                          situation.during.total()) +
                      " of the time");
  // At a limit what waits for the disk waits for the limit, too.
  if (situation.excess(State::kIoThrottled) > finding.explained_ns) finding.nats -= 2;
  constexpr double kNoticeable = 1e6;  // bytes a second
  const auto who = WhoRose(situation.disk_before, situation.disk_during, false);
  const auto own = WhoRose(situation.disk_before, situation.disk_during, true);
  if (!who.empty() && who.front().second > kNoticeable) {
    finding.nats += 1;
    finding.sentence += fmt::format("; {} used them with {:.0f} MB/s more than before",
                                    NameParty(who.front().first), who.front().second / 1e6);
  } else if (!own.empty() && own.front().second > kNoticeable) {
    if (ReadsAgain(situation)) finding.nats -= 1.5;
    finding.sentence += fmt::format("; the program's own {} used them with {:.0f} MB/s more than before",
                                    own.front().first.name, own.front().second / 1e6);
  } else {
    finding.nats -= 0.5;
    finding.sentence += "; nobody used them more than before";
  }
  return finding;
}

}  // namespace

const Cause& BlockIo() {
  static constexpr Cause kCause{"block_io", "Block-I/O contention", kStatesOf, kCases, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
