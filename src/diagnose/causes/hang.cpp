// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// A step that doesn't end, and nothing is put on the GPU any more; or one that has ended after all.

constexpr std::array kStatesOf = {State::kUnexplained, State::kWaiting};

std::optional<Finding> Look(const Situation& situation) {
  constexpr int64_t kSilentNs = 5'000'000'000;
  if (!situation.unfinished && situation.idle_ns >= kSilentNs)
    return Finding{.explained_ns = ExcessOf(situation, kStatesOf),
                   .sentence = fmt::format("a step waited {:.0f} s for somebody who did nothing",
                                           situation.idle_ns / 1e9)};
  if (!situation.unfinished || situation.silent_ns < kSilentNs) return std::nullopt;
  Finding finding{.explained_ns = situation.excess_ns()};
  finding.sentence =
      fmt::format("no step has ended for {:.0f} s, and nothing was put on the GPU for {:.0f} s",
                  situation.during.total() / 1e9, static_cast<double>(situation.silent_ns) / 1e9);
  return finding;
}

}  // namespace

const Cause& Hang() {
  static constexpr Cause kCause{"hang", "Hang", kStatesOf, {}, Look};
  return kCause;
}

}  // namespace gpusonde::diagnose
